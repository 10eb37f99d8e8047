//===- MutateMessage.h - small changes of a protobuf message ----*- C++ -*-===//
//
// Random bytes seldom get past the wire format. Changes of single fields do:
// a dim, an axis, a name that another node uses, an op of another kind.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TEST_FUZZ_MUTATEMESSAGE_H
#define AUTOHET_TEST_FUZZ_MUTATEMESSAGE_H

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <memory>
#include <random>

/// Messages of a type that is only known by its description: ONNX's generated
/// classes cannot say what their fields are.
class MessageKind {
public:
  /// `descriptors`: a file that `protoc --descriptor_set_out` wrote.
  MessageKind(const char *descriptors, const char *type);
  std::unique_ptr<google::protobuf::Message> create() const {
    return std::unique_ptr<google::protobuf::Message>(prototype->New());
  }

private:
  google::protobuf::DescriptorPool pool;
  google::protobuf::DynamicMessageFactory factory;
  const google::protobuf::Message *prototype = nullptr;
};

/// Changes one field of `message` or of a message inside it: removes, doubles
/// or swaps elements, sets numbers to neighbours and to extremes, and strings
/// to others of the message.
void mutateMessage(google::protobuf::Message &message, std::mt19937 &random);

#endif
