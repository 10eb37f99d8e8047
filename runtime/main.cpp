//===- main.cpp - of every node's executable --------------------------------===//
//
// Apart from the library, so that tests and tools can link the runtime with a
// main of their own.
//
//===----------------------------------------------------------------------===//

#include "autohet/runtime/node.h"

int main(int argc, char **argv) { return autohet_node_main(argc, argv); }
