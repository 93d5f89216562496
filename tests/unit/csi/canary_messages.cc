#include "unit/csi/canary_messages.h"

#include "csi.pb.h"

namespace volumed {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Filler {
 public:
  explicit Filler(std::vector<std::string>& canaries) : canaries_(canaries) {}

  void Fill(Message& message, bool secret) {
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      FillField(message, field, secret || field.options().GetExtension(::csi::v1::csi_secret));
    }
  }

 private:
  void FillField(Message& message, const FieldDescriptor& field, bool secret) {
    const Reflection& reflection = *message.GetReflection();
    const bool many = field.is_repeated();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = Text(message, field, secret);
        if (many) return reflection.AddString(&message, &field, text);
        return reflection.SetString(&message, &field, text);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(many ? *reflection.AddMessage(&message, &field)
                         : *reflection.MutableMessage(&message, &field),
                    secret);
      case FieldDescriptor::CPPTYPE_INT64:
        return many ? reflection.AddInt64(&message, &field, 1)
                    : reflection.SetInt64(&message, &field, 1);
      case FieldDescriptor::CPPTYPE_INT32:
        return many ? reflection.AddInt32(&message, &field, 1)
                    : reflection.SetInt32(&message, &field, 1);
      case FieldDescriptor::CPPTYPE_BOOL:
        return many ? reflection.AddBool(&message, &field, true)
                    : reflection.SetBool(&message, &field, true);
      case FieldDescriptor::CPPTYPE_ENUM:
        return many ? reflection.AddEnumValue(&message, &field, 1)
                    : reflection.SetEnumValue(&message, &field, 1);
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_UINT64:
      case FieldDescriptor::CPPTYPE_FLOAT:
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return;  // CSI has none
    }
  }

  std::string Text(const Message& message, const FieldDescriptor& field, bool secret) {
    const std::string number = std::to_string(++count_);
    const bool is_key = message.GetDescriptor()->options().map_entry() && field.number() == 1;
    if (is_key) return "key-" + number;
    if (field.name() == "mount_flags") {
      canaries_.push_back("CANARY-" + number + "-flag");
      return "password=" + canaries_.back();
    }
    if (!secret) return "plain-" + number;
    canaries_.push_back("CANARY-" + number + "-secret");
    return canaries_.back();
  }

  std::vector<std::string>& canaries_;
  int count_ = 100;  // so that no number begins another
};

}  // namespace

CanaryMessage CanaryMessageOf(const google::protobuf::Descriptor& type) {
  CanaryMessage made;
  made.message.reset(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->New());
  Filler(made.canaries).Fill(*made.message, false);
  return made;
}

}  // namespace volumed
