// One program a message of the verifiers, named after the constraint in ExecOps.td
// that it breaks.
//
// RUN: autohet-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{needs positive counts below 2^31, but has 1 microbatches of 0 in a batch of 1}}
exec.program @program_c1_size rank 0 of 1 replica 0 stage 0 microbatches 1 of 0 from 0 batch 1 {
}

// -----

// expected-error @+1 {{needs positive counts below 2^31, but has 0 microbatches of 1 in a batch of 1}}
exec.program @program_c1_count rank 0 of 1 replica 0 stage 0 microbatches 0 of 1 from 0 batch 1 {
}

// -----

// expected-error @+1 {{needs positive counts below 2^31, but has 1 microbatches of 1 in a batch of 0}}
exec.program @program_c1_batch rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 0 {
}

// -----

// expected-error @+1 {{has rank 2 in a world of 2}}
exec.program @program_c2 rank 2 of 2 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
}

// -----

exec.program @buffer_c1 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{needs at least one slot, but has 0}}
  %x = exec.buffer "x" arena slots 0 : !exec.buffer<tensor<2xf32>>
}

// -----

exec.program @buffer_c2 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{must start at a multiple of 64 bytes, but starts at 100}}
  %x = exec.buffer "x" arena at 100 : !exec.buffer<tensor<2xf32>>
}

// -----

exec.program @buffer_c3 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %w = exec.buffer "w" parameter : !exec.buffer<tensor<4x16xf32>>
  // expected-error @+1 {{must start at a multiple of 64 bytes of the whole, but starts at 4}}
  %r = exec.buffer "r" parameter in %w : !exec.buffer<tensor<4x16xf32>> from 4 : !exec.buffer<tensor<1x16xf32>>
}

// -----

exec.program @buffer_c3_end rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %w = exec.buffer "w" parameter : !exec.buffer<tensor<4x16xf32>>
  // expected-error @+1 {{ends at byte 320 of a buffer of 256 bytes}}
  %r = exec.buffer "r" parameter in %w : !exec.buffer<tensor<4x16xf32>> from 192 : !exec.buffer<tensor<2x16xf32>>
}

// -----

exec.program @buffer_c3_space rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %w = exec.buffer "w" parameter : !exec.buffer<tensor<4x16xf32>>
  // expected-error @+1 {{lies in the gradient space as a part of a buffer in the parameter space, wanted one space that is not the arena}}
  %r = exec.buffer "r" gradient in %w : !exec.buffer<tensor<4x16xf32>> from 0 : !exec.buffer<tensor<2x16xf32>>
}

// -----

exec.program @buffer_c3_slots rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %w = exec.buffer "w" parameter : !exec.buffer<tensor<4x16xf32>>
  // expected-error @+1 {{has 2 slots as a part of a buffer of 1, wanted one of one}}
  %r = exec.buffer "r" parameter slots 2 in %w : !exec.buffer<tensor<4x16xf32>> from 0 : !exec.buffer<tensor<2x16xf32>>
}

// -----

exec.program @buffer_c3_part rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %w = exec.buffer "w" parameter : !exec.buffer<tensor<4x16xf32>>
  %r = exec.buffer "r" parameter in %w : !exec.buffer<tensor<4x16xf32>> from 0 : !exec.buffer<tensor<2x16xf32>>
  // expected-error @+1 {{is a part of a part}}
  %q = exec.buffer "q" parameter in %r : !exec.buffer<tensor<2x16xf32>> from 0 : !exec.buffer<tensor<1x16xf32>>
}

// -----

exec.program @buffer_c3_alone rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{is a part of a buffer, or it starts within one, but the other is not said}}
  %r = exec.buffer "r" parameter {within = 64 : i64} : !exec.buffer<tensor<2x16xf32>>
}

// -----

exec.program @parameter_rank rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %p = exec.buffer "p" parameter : !exec.buffer<tensor<4x2xf32>>
  // expected-error @+1 {{describes a box of rank 2 with 1 offsets of 2 dims}}
  exec.parameter "p" of [4, 2] at [0] %p : (!exec.buffer<tensor<4x2xf32>>)
}

// -----

exec.program @parameter_c1 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %p = exec.buffer "p" parameter : !exec.buffer<tensor<4x2xf32>>
  // expected-error @+1 {{reaches outside dim 0: offset 2 and size 4, but the whole has 5}}
  exec.parameter "p" of [5, 2] at [2, 0] %p : (!exec.buffer<tensor<4x2xf32>>)
}

// -----

exec.program @parameter_c2_state rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %p = exec.buffer "p" parameter : !exec.buffer<tensor<4x2xf32>>
  // expected-error @+1 {{has optimizer state but is not owned here}}
  exec.parameter "p" of [4, 2] at [0, 0] %p gradient %p states %p : (!exec.buffer<tensor<4x2xf32>>, !exec.buffer<tensor<4x2xf32>>, !exec.buffer<tensor<4x2xf32>>)
}

// -----

exec.program @parameter_c2_owned rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %p = exec.buffer "p" parameter : !exec.buffer<tensor<4x2xf32>>
  // expected-error @+1 {{is owned here but has no gradient}}
  exec.parameter "p" of [4, 2] at [0, 0] owned %p : (!exec.buffer<tensor<4x2xf32>>)
}

// -----

exec.program @input_c1_role rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{has role "output", wanted "input" or "labels"}}
  exec.input "x" role "output" kind "file" batch_dim 0 vocabulary 0 : tensor<2xi64>
}

// -----

exec.program @input_c1_kind rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{has kind "noise", wanted file, tokens, labels, ones, zeros or arange}}
  exec.input "x" role "input" kind "noise" batch_dim 0 vocabulary 0 : tensor<2xi64>
}

// -----

exec.program @output_c1 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{describes a box of rank 2 with 2 offsets of 3 dims}}
  exec.output "y" of [1, 2, 3] at [0, 0] batch_dim 0 : tensor<2x3xf32>
}

// -----

exec.program @loop_c1 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  exec.stream "compute" {
    // expected-error @+1 {{goes from 3 to 2}}
    exec.loop 3 to 2 {
    }
  }
}

// -----

exec.program @launch_c2 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<2x3xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{writes 3 of 2 buffers}}
    exec.launch @gelu_0(%x, %y) writes 3 : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @gemm_sizes rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<2x3xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{needs sizes [batch, m, n, k], but has 3}}
    exec.gemm %x, %x, %y sizes [2, 3, 3] : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @gemm_c1_a rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<2x3xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{a must hold 8 elements, but is 'tensor<2x3xf32>'}}
    exec.gemm %x, %x, %y sizes [1, 2, 3, 4] : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @gemm_c1_b rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<2x3xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{b must hold 9 elements, but is 'tensor<2x3xf32>'}}
    exec.gemm %x, %x, %y sizes [1, 2, 3, 3] : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @gemm_c1_c rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<2x3xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{c must hold 4 elements, but is 'tensor<2x3xf32>'}}
    exec.gemm %x, %x, %y sizes [1, 2, 2, 3] : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @copy_c1 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<2xi64>>
  exec.stream "compute" {
    // expected-error @+1 {{copies 'tensor<2x3xf32>' to 'tensor<2xi64>'}}
    exec.copy %x to %y : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2xi64>>
  }
}

// -----

exec.program @reduce_c1_count rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<5xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{sums 'tensor<2x3xf32>' into 'tensor<5xf32>'}}
    exec.reduce %x to %y : !exec.buffer<tensor<2x3xf32>> to !exec.buffer<tensor<5xf32>>
  }
}

// -----

exec.program @reduce_c1_type rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xi64>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<2x3xi64>>
  exec.stream "compute" {
    // expected-error @+1 {{sums 'tensor<2x3xi64>' into 'tensor<2x3xi64>'}}
    exec.reduce %x to %y : !exec.buffer<tensor<2x3xi64>> to !exec.buffer<tensor<2x3xi64>>
  }
}

// -----

exec.program @hook_c1 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  exec.stream "compute" {
    // expected-error @+1 {{has place "middle", wanted "begin" or "end"}}
    exec.hook "middle"
  }
}

// -----

exec.program @send_c1 rank 0 of 2 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %e = exec.event "sent" : index
  exec.stream "compute" {
    // expected-error @+1 {{moves no buffer, wanted at least one}}
    "exec.send"(%e) <{peer = 1 : i64, channel = 0 : i64}> : (index) -> ()
  }
}

// -----

exec.program @recv_c2 rank 0 of 2 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %e = exec.event "arrived" : index
  exec.stream "compute" {
    // expected-error @+1 {{has channel 1048576, wanted 0 to 1048575}}
    exec.recv %x from 1 channel 1048576 event %e : !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @launch_c1_name rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<5xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{launches @gelu_0, which is no function of the module}}
    exec.launch @gelu_0(%x, %x) writes 1 : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

func.func private @gelu_0(tensor<2x3xf32>) -> tensor<2x3xf32>
exec.program @launch_c1_count rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<5xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{reads 2 buffers and writes 1, but @gelu_0 has 1 arguments and 1 results}}
    exec.launch @gelu_0(%x, %x, %x) writes 1 : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

func.func private @gelu_0(tensor<2x3xf32>) -> tensor<2x3xf32>
exec.program @launch_c1_writes rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<5xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{reads 2 buffers and writes 0, but @gelu_0 has 1 arguments and 1 results}}
    exec.launch @gelu_0(%x, %x) writes 0 : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

func.func private @gelu_0(tensor<2x3xf32>) -> tensor<2x3xf32>
exec.program @launch_c1_type rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<5xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{gives 'tensor<5xf32>' for 'tensor<2x3xf32>', result 0 of @gelu_0}}
    exec.launch @gelu_0(%x, %y) writes 1 : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<5xf32>>
  }
}

// -----

func.func private @softmax_0(tensor<2x3xf32>) -> tensor<2x3xf32> attributes {autohet.scratch_bytes = 24 : i64}
exec.program @launch_c3 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<5xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{gives 'tensor<5xf32>' as scratch memory, but @softmax_0 needs 24 bytes}}
    exec.launch @softmax_0(%x, %x, %y) writes 2 : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<5xf32>>
  }
}

// -----

func.func private @gelu_0(tensor<2x3xf32>) -> tensor<2x3xf32>
exec.program @launch_c3_none rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<5xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{reads 1 buffers and writes 2, but @gelu_0 has 1 arguments and 1 results}}
    exec.launch @gelu_0(%x, %x, %x) writes 2 : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @feed_c1 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{feeds "ids", which is not declared}}
    exec.feed "ids" %x : !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @feed_c1_type rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  exec.input "ids" role "input" kind "tokens" batch_dim 0 vocabulary 0 : tensor<2x3xi64>
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{feeds "ids", which is 'tensor<2x3xi64>', to 'tensor<2x3xf32>'}}
    exec.feed "ids" %x : !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @emit_c1 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{gives "logits", which is not declared}}
    exec.emit "logits" %x : !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @emit_c1_size rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  exec.output "logits" of [2, 4] at [0, 0] batch_dim 0 : tensor<2x4xf32>
  %x = exec.buffer "x" arena : !exec.buffer<tensor<2x3xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{gives 'tensor<2x3xf32>' as "logits", which is 'tensor<2x4xf32>'}}
    exec.emit "logits" %x : !exec.buffer<tensor<2x3xf32>>
  }
}

// -----

exec.program @parameter_c2_gradient rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %p = exec.buffer "p" constant : !exec.buffer<tensor<4x2xf32>>
  // expected-error @+1 {{has a gradient, but lies in the constant space}}
  exec.parameter "p" of [4, 2] at [0, 0] %p gradient %p : (!exec.buffer<tensor<4x2xf32>>, !exec.buffer<tensor<4x2xf32>>)
}

// -----

exec.program @sizeless rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{a buffer of 'tensor<?xf32>', wanted a static tensor of integers or floats}}
  %x = exec.buffer "x" arena : !exec.buffer<tensor<?xf32>>
}

// -----

exec.program @program_c1_large rank 0 of 1 replica 0 stage 0 microbatches 4294967296 of 1 from 0 batch 1 {
// expected-error @-1 {{needs positive counts below 2^31, but has 4294967296 microbatches of 1 in a batch of 1}}
}

// -----

exec.program @program_c3 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{is neither a declaration nor a stream, and a program holds nothing else}}
  exec.agree
}

// -----

exec.program @stream_c1 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  exec.stream "compute" {
    // expected-error @+1 {{is not a command or a loop, and 'exec.stream' holds nothing else}}
    %x = exec.buffer "x" arena : !exec.buffer<tensor<2xf32>>
  }
}

// -----

exec.program @loop_c2 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  exec.stream "compute" {
    exec.loop 0 to 2 {
      // expected-error @+1 {{is not a command, and 'exec.loop' holds nothing else}}
      exec.loop 0 to 2 {
      }
    }
  }
}

// -----

exec.program @buffer_c1_large rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{needs 4294967296 slots of 4194304 bytes, at most 281474976710656 bytes}}
  %x = exec.buffer "x" arena slots 4294967296 : !exec.buffer<tensor<1024x1024xf32>>
}

// -----

exec.program @input_c2 rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{counts samples by dim 2, which is no dim of 'tensor<2x3xi64>' and not -1}}
  exec.input "ids" role "input" kind "tokens" batch_dim 2 vocabulary 0 : tensor<2x3xi64>
}

// -----

exec.program @output_c1_box rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  // expected-error @+1 {{reaches outside dim 1: offset 2 and size 4, but the whole has 4}}
  exec.output "logits" of [2, 4] at [0, 2] batch_dim 0 : tensor<2x4xf32>
}

// -----

exec.program @gemm_c1_overflow rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<1xf32>>
  exec.stream "compute" {
    // expected-error @+1 {{a must hold [4294967296, 4294967296, 1] elements, but is 'tensor<1xf32>'}}
    exec.gemm %x, %x, %x sizes [4294967296, 4294967296, 1, 1] : !exec.buffer<tensor<1xf32>>, !exec.buffer<tensor<1xf32>>, !exec.buffer<tensor<1xf32>>
  }
}
