// Whether what a command reads is there, and stays until it is done: two stages
// whose batches follow one another, and what goes wrong without each wait.
//
// RUN: autohet-opt %s --split-input-file --exec-verify-order=steps=4 --verify-diagnostics

func.func private @make() -> tensor<8xf32>
func.func private @take(tensor<8xf32>)

exec.program @"n/0" rank 0 of 2 replica 0 stage 0 microbatches 3 of 1 from 0 batch 3 bytes [128, 0, 0, 0, 0, 0] {
  %x = exec.buffer "x" arena slots 2 at 0 : !exec.buffer<tensor<8xf32>>
  %p = exec.event "produced" : index
  %s = exec.event "sent" : index
  exec.stream "compute" {
    exec.loop 0 to 3 {
      exec.wait %s {microbatch = -2 : i64}
      exec.launch @make(%x) writes 1 : !exec.buffer<tensor<8xf32>>
      exec.record %p
    }
  }
  exec.stream "send" communication {
    exec.loop 0 to 3 {
      exec.wait %p
      exec.send %x to 1 channel 0 event %s : !exec.buffer<tensor<8xf32>>
    }
  }
}
exec.program @"n/1" rank 1 of 2 replica 0 stage 1 microbatches 3 of 1 from 0 batch 3 bytes [128, 0, 0, 0, 0, 0] {
  %y = exec.buffer "y" arena slots 2 at 0 : !exec.buffer<tensor<8xf32>>
  %a = exec.event "arrived" : index
  %c = exec.event "consumed" : index
  exec.stream "compute" {
    exec.loop 0 to 3 {
      exec.wait %a
      exec.launch @take(%y) writes 0 : !exec.buffer<tensor<8xf32>>
      exec.record %c
    }
  }
  exec.stream "receive" communication {
    exec.loop 0 to 3 {
      exec.wait %c {microbatch = -2 : i64}
      exec.recv %y from 0 channel 0 event %a : !exec.buffer<tensor<8xf32>>
    }
  }
}

// -----

// The sender looks three microbatches back, but there are two slots.
func.func private @make() -> tensor<8xf32>

exec.program @"n/0" rank 0 of 2 replica 0 stage 0 microbatches 3 of 1 from 0 batch 3 bytes [128, 0, 0, 0, 0, 0] {
  %x = exec.buffer "x" arena slots 2 at 0 : !exec.buffer<tensor<8xf32>>
  %p = exec.event "produced" : index
  %s = exec.event "sent" : index
  exec.stream "compute" {
    exec.loop 0 to 3 {
      exec.wait %s {microbatch = -3 : i64}
      // expected-note @below {{this is for microbatch 2, in 'x'}}
      exec.launch @make(%x) writes 1 : !exec.buffer<tensor<8xf32>>
      exec.record %p
    }
  }
  exec.stream "send" communication {
    exec.loop 0 to 3 {
      exec.wait %p
      // expected-error @below {{reads 'x' for microbatch 0 of all steps, which another command may be writing}}
      exec.send %x to 1 channel 0 event %s : !exec.buffer<tensor<8xf32>>
    }
  }
}

// -----

// Nobody says when the arrived value has been read.
func.func private @make() -> tensor<8xf32>
func.func private @take(tensor<8xf32>)

exec.program @"n/0" rank 0 of 2 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 bytes [64, 0, 0, 0, 0, 0] {
  %x = exec.buffer "x" arena at 0 : !exec.buffer<tensor<8xf32>>
  %s = exec.event "sent" : index
  exec.stream "compute" {
    exec.launch @make(%x) writes 1 : !exec.buffer<tensor<8xf32>>
    exec.send %x to 1 channel 0 event %s : !exec.buffer<tensor<8xf32>>
    exec.wait %s
  }
}
exec.program @"n/1" rank 1 of 2 replica 0 stage 1 microbatches 1 of 1 from 0 batch 1 bytes [64, 0, 0, 0, 0, 0] {
  %y = exec.buffer "y" arena at 0 : !exec.buffer<tensor<8xf32>>
  %a = exec.event "arrived" : index
  exec.stream "compute" {
    exec.wait %a
    exec.launch @take(%y) writes 0 : !exec.buffer<tensor<8xf32>>
  }
  exec.stream "receive" communication {
    // expected-error @below {{writes 'y' for microbatch 1 of all steps, which another command may be writing}}
    // expected-note @below {{this is for microbatch 0, in 'y'}}
    exec.recv %y from 0 channel 0 event %a : !exec.buffer<tensor<8xf32>>
  }
}

// -----

// Two buffers in one place.
func.func private @make() -> tensor<8xf32>
func.func private @take(tensor<8xf32>)

exec.program @"n/0" rank 0 of 1 replica 0 stage 0 microbatches 2 of 1 from 0 batch 2 bytes [64, 0, 0, 0, 0, 0] {
  %x = exec.buffer "x" arena at 0 : !exec.buffer<tensor<8xf32>>
  %y = exec.buffer "y" arena at 0 : !exec.buffer<tensor<8xf32>>
  exec.stream "compute" {
    exec.loop 0 to 2 {
      exec.launch @make(%x) writes 1 : !exec.buffer<tensor<8xf32>>
      // expected-note @below {{this is for microbatch 0, in 'y'}}
      exec.launch @make(%y) writes 1 : !exec.buffer<tensor<8xf32>>
      // expected-error @below {{reads 'x' for microbatch 0 of all steps, which holds another value}}
      exec.launch @take(%x) writes 0 : !exec.buffer<tensor<8xf32>>
    }
  }
}

// -----

// Each waits for what the other sends later.
func.func private @take(tensor<8xf32>)

exec.program @"n/0" rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 bytes [0, 0, 0, 0, 0, 0] {
  %e = exec.event "e" : index
  %f = exec.event "f" : index
  exec.stream "a" {
    // expected-error @below {{is waited at for ever in step 0}}
    exec.wait %e
    exec.record %f
  }
  exec.stream "b" {
    exec.wait %f
    exec.record %e
  }
}

// -----

exec.program @"n/0" rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @below {{has no place: run exec-plan-memory first}}
  %x = exec.buffer "x" arena : !exec.buffer<tensor<8xf32>>
}
