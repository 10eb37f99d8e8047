//===- MutateMessage.cpp - small changes of a protobuf message ------------===//

#include "MutateMessage.h"

#include <cstdlib>
#include <fstream>
#include <google/protobuf/descriptor.pb.h>
#include <limits>
#include <vector>

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

/// One field that is set (or, singular, could be) of some message.
struct Place {
  Message *message;
  const FieldDescriptor *field;
};

/// Large arrays of numbers are one place: else most changes were of weights.
void collect(Message &message, std::vector<Place> &places,
             std::vector<std::string> &strings) {
  const Reflection *reflection = message.GetReflection();
  std::vector<const FieldDescriptor *> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor *field : fields) {
    places.push_back({&message, field});
    int count =
        field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->type() == FieldDescriptor::TYPE_STRING)
        strings.push_back(field->is_repeated()
                              ? reflection->GetRepeatedString(message, field, i)
                              : reflection->GetString(message, field));
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
        collect(field->is_repeated()
                    ? *reflection->MutableRepeatedMessage(&message, field, i)
                    : *reflection->MutableMessage(&message, field),
                places, strings);
    }
  }
}

class Mutator {
public:
  Mutator(std::mt19937 &random, const std::vector<std::string> &strings)
      : random(random), strings(strings) {}

  void change(Place place) {
    message = place.message;
    field = place.field;
    reflection = message->GetReflection();
    if (!field->is_repeated()) {
      if (below(8) == 0)
        reflection->ClearField(message, field);
      else
        set(-1);
      return;
    }
    int count = reflection->FieldSize(*message, field);
    switch (below(4)) {
    case 0:
      reflection->SwapElements(message, field, below(count), below(count));
      break;
    case 1: // the last one, in a random one's place
      reflection->SwapElements(message, field, below(count), count - 1);
      reflection->RemoveLast(message, field);
      break;
    default:
      set(below(count));
    }
  }

private:
  unsigned below(unsigned count) { return random() % std::max(count, 1u); }

  template <typename Integer>
  Integer changed(Integer value) {
    switch (below(6)) {
    case 0: // may wrap around
      return static_cast<Integer>(static_cast<uint64_t>(value) + 1);
    case 1:
      return static_cast<Integer>(static_cast<uint64_t>(value) - 1);
    case 2:
      return below(4);
    case 3:
      return std::numeric_limits<Integer>::max();
    case 4:
      return std::numeric_limits<Integer>::min();
    default:
      return static_cast<Integer>(uint64_t(1) << below(63));
    }
  }

  std::string changed(std::string value) {
    switch (below(4)) {
    case 0:
      value.resize(below(value.size() + 1));
      return value;
    case 1:
      value.append(1 + below(9), static_cast<char>(' ' + below(95)));
      return value;
    default:
      return strings.empty() ? value : strings[below(strings.size())];
    }
  }

  /// Element `index`, or the singular field where that is -1.
  void set(int index) {
#define AUTOHET_CHANGE(Type)                                                   \
  index < 0                                                                    \
      ? reflection->Set##Type(message, field,                                  \
                              changed(reflection->Get##Type(*message, field))) \
      : reflection->SetRepeated##Type(                                         \
            message, field, index,                                             \
            changed(reflection->GetRepeated##Type(*message, field, index)))
    switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      AUTOHET_CHANGE(Int32);
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      AUTOHET_CHANGE(Int64);
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      AUTOHET_CHANGE(UInt64);
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      AUTOHET_CHANGE(String);
      break;
    case FieldDescriptor::CPPTYPE_ENUM: // enums of other versions are legal
      if (index < 0)
        reflection->SetEnumValue(message, field, below(24));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const float values[] = {0, -1, 1e30f,
                              std::numeric_limits<float>::quiet_NaN()};
      if (index < 0)
        reflection->SetFloat(message, field, values[below(4)]);
      break;
    }
    default: // messages change inside; others ONNX has in weights only
      break;
    }
#undef AUTOHET_CHANGE
  }

  std::mt19937 &random;
  const std::vector<std::string> &strings;
  Message *message = nullptr;
  const FieldDescriptor *field = nullptr;
  const Reflection *reflection = nullptr;
};

} // namespace

MessageKind::MessageKind(const char *descriptors, const char *type) {
  std::ifstream file(descriptors, std::ios::binary);
  google::protobuf::FileDescriptorSet set;
  if (!set.ParseFromIstream(&file))
    abort();
  for (const google::protobuf::FileDescriptorProto &one : set.file())
    pool.BuildFile(one);
  prototype = factory.GetPrototype(pool.FindMessageTypeByName(type));
}

void mutateMessage(Message &message, std::mt19937 &random) {
  std::vector<Place> places;
  std::vector<std::string> strings;
  collect(message, places, strings);
  if (!places.empty())
    Mutator(random, strings).change(places[random() % places.size()]);
}
