//===- NoImage.cpp - the image of a test that has none ----------------------===//

#include "autohet/runtime/program.h"

const ah_node_image autohet_node_image = {"{}", nullptr, 0, 0, 1};
