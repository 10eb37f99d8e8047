/*===- node.h - the main of a node's executable -----------------*- C -*-===*/

#ifndef AUTOHET_RUNTIME_NODE_H
#define AUTOHET_RUNTIME_NODE_H

#ifdef __cplusplus
extern "C" {
#endif

/* What `main` of every compiled node is: parses the run-time options, becomes
 * the node's supervisor or one of its workers, and returns the exit status.
 * Reads autohet_node_image. */
int autohet_node_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
