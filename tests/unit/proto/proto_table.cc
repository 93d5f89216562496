#include "proto_table.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include <iterator>
#include <set>
#include <sstream>

namespace volumed {
namespace {

namespace pb = google::protobuf;

const std::set<std::string>& Levels() {
  static const std::set<std::string> levels = {"<=1.12", ">=1.13"};
  return levels;
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

void Append(std::string& text, const std::string& word) {
  if (!text.empty() && !word.empty()) text += ' ';
  text += word;
}

std::string WithoutComments(std::istream& in) {
  std::string text;
  for (std::string line; std::getline(in, line);) text += line.substr(0, line.find('#')) + '\n';
  return text;
}

class TableReader {
 public:
  ProtoTable Read(const std::string& text) {
    std::istringstream in(text);
    for (std::string kind; in >> kind;) {
      std::string head;
      std::string body;
      if (kind == "package" && in >> head) {
        Add(kind, Words(head));
      } else if (!std::getline(in, head, '{') || !std::getline(in, body, '}') ||
                 body.find('{') != std::string::npos) {
        table_.problems.push_back(kind + " " + head + ": there is no { or no }");
      } else {
        ReadBlock(kind, Words(head), body);
      }
    }
    return std::move(table_);
  }

 private:
  void ReadBlock(const std::string& kind, std::vector<std::string> head, const std::string& body) {
    static const std::set<std::string> kinds = {"message", "enum", "service", "extend"};
    if (kinds.count(kind) == 0 || head.empty()) {
      table_.problems.push_back(kind + ": none of message, enum, service, extend with a name");
      return;
    }
    const std::string owner = head.front();
    head.erase(head.begin());
    if (kind != "extend") Add(kind + " " + owner, head);
    std::istringstream items(body);
    for (std::string item; std::getline(items, item, ',');) {
      const size_t equals = item.find('=');
      const std::vector<std::string> name = Words(item.substr(0, equals));
      if (equals != std::string::npos && name.size() == 1) {
        Add(owner + "." + name.front(), Words(item.substr(equals + 1)));
      } else if (!Words(body).empty()) {
        table_.problems.push_back(kind + " " + owner + ": not NAME=...: " + item);
      }
    }
  }

  void Add(const std::string& name, const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) {
      if (Levels().count(word) == 0) {
        Append(text, word);
      } else if (!table_.levels.emplace(name, word).second) {
        table_.problems.push_back(name + ": more than one level");
      }
    }
    if (!table_.declarations.emplace(name, text).second) {
      table_.problems.push_back(name + ": is there twice");
    }
  }

  ProtoTable table_;
};

// The options that are set. They come in the order of their numbers.
std::string Marks(const pb::Message& options) {
  std::vector<const pb::FieldDescriptor*> set;
  options.GetReflection()->ListFields(options, &set);
  std::string marks;
  for (const pb::FieldDescriptor* option : set) {
    const bool is_true = option->cpp_type() == pb::FieldDescriptor::CPPTYPE_BOOL &&
                         !option->is_repeated() &&
                         options.GetReflection()->GetBool(options, option);
    if (is_true && option->full_name() == "csi.v1.csi_secret") {
      Append(marks, "*");
    } else if (is_true && option->full_name().rfind("csi.v1.alpha_", 0) == 0) {
      Append(marks, "alpha");
    } else {
      Append(marks, "[" + option->full_name() + (is_true ? "]" : "=...]"));
    }
  }
  return marks;
}

class DescriptorReader {
 public:
  Declarations Read(const pb::FileDescriptor& file) {
    package_ = file.package();
    declared_["package"] = package_;
    for (int i = 0; i < file.message_type_count(); ++i) ReadMessage(*file.message_type(i));
    for (int i = 0; i < file.enum_type_count(); ++i) ReadEnum(*file.enum_type(i));
    for (int i = 0; i < file.service_count(); ++i) ReadService(*file.service(i));
    for (int i = 0; i < file.extension_count(); ++i) ReadExtension(*file.extension(i));
    return std::move(declared_);
  }

 private:
  std::string NameOf(const std::string& full_name) const {
    const bool is_own = full_name.rfind(package_ + ".", 0) == 0;
    return is_own ? full_name.substr(package_.size() + 1) : full_name;
  }

  std::string TypeOf(const pb::FieldDescriptor& field) const {
    static const std::map<pb::FieldDescriptor::Type, std::string> words = {
        {pb::FieldDescriptor::TYPE_STRING, "s"},
        {pb::FieldDescriptor::TYPE_INT32, "i32"},
        {pb::FieldDescriptor::TYPE_INT64, "i64"}};
    if (field.message_type() != nullptr) return NameOf(field.message_type()->full_name());
    if (field.enum_type() != nullptr) return NameOf(field.enum_type()->full_name());
    const auto word = words.find(field.type());
    return word == words.end() ? field.type_name() : word->second;
  }

  std::string TypeAndLabel(const pb::FieldDescriptor& field) const {
    if (field.is_map()) {
      const std::string key = TypeOf(*field.message_type()->map_key());
      const std::string value = TypeOf(*field.message_type()->map_value());
      return key == "s" && value == "s" ? "m" : "map<" + key + "," + value + ">";
    }
    if (field.is_required()) return "required " + TypeOf(field);
    if (field.has_optional_keyword()) return "optional " + TypeOf(field);
    return (field.is_repeated() ? "R " : "") + TypeOf(field);
  }

  std::string FieldText(const pb::FieldDescriptor& field) const {
    std::string text = std::to_string(field.number());
    Append(text, TypeAndLabel(field));
    if (field.real_containing_oneof() != nullptr) {
      Append(text, "|" + field.real_containing_oneof()->name());
    }
    Append(text, Marks(field.options()));
    return text;
  }

  void ReadMessage(const pb::Descriptor& message) {
    const std::string name = NameOf(message.full_name());
    declared_["message " + name] = Marks(message.options());
    for (int i = 0; i < message.field_count(); ++i) {
      declared_[name + "." + message.field(i)->name()] = FieldText(*message.field(i));
    }
    for (int i = 0; i < message.nested_type_count(); ++i) {
      const pb::Descriptor& nested = *message.nested_type(i);
      if (!nested.options().map_entry()) ReadMessage(nested);
    }
    for (int i = 0; i < message.enum_type_count(); ++i) ReadEnum(*message.enum_type(i));
    for (int i = 0; i < message.extension_count(); ++i) ReadExtension(*message.extension(i));
  }

  void ReadEnum(const pb::EnumDescriptor& type) {
    const std::string name = NameOf(type.full_name());
    declared_["enum " + name] = Marks(type.options());
    for (int i = 0; i < type.value_count(); ++i) {
      const pb::EnumValueDescriptor& value = *type.value(i);
      std::string text = std::to_string(value.number());
      Append(text, Marks(value.options()));
      declared_[name + "." + value.name()] = text;
    }
  }

  void ReadService(const pb::ServiceDescriptor& service) {
    const std::string name = NameOf(service.full_name());
    declared_["service " + name] = Marks(service.options());
    for (int i = 0; i < service.method_count(); ++i) {
      const pb::MethodDescriptor& method = *service.method(i);
      std::string text = method.client_streaming() ? "stream" : "";
      Append(text, NameOf(method.input_type()->full_name()) + " ->");
      Append(text, method.server_streaming() ? "stream" : "");
      Append(text, NameOf(method.output_type()->full_name()));
      Append(text, Marks(method.options()));
      declared_[name + "." + method.name()] = text;
    }
  }

  void ReadExtension(const pb::FieldDescriptor& extension) {
    declared_[extension.containing_type()->full_name() + "." + NameOf(extension.full_name())] =
        FieldText(extension);
  }

  std::string package_;
  Declarations declared_;
};

std::string LevelOf(const ProtoTable& table, const std::string& name) {
  const auto level = table.levels.find(name);
  return level == table.levels.end() ? "" : level->second;
}

// Its own level, or else the one of what it is declared in.
std::string LevelWithin(const ProtoTable& table, const std::string& name) {
  std::string level = LevelOf(table, name);
  for (size_t dot = name.rfind('.'); level.empty() && dot != std::string::npos && dot > 0;
       dot = name.rfind('.', dot - 1)) {
    for (const char* kind : {"message ", "enum ", "service "}) {
      if (level.empty()) level = LevelOf(table, kind + name.substr(0, dot));
    }
  }
  return level;
}

}  // namespace

ProtoTable ReadProtoTable(std::istream& in) { return TableReader().Read(WithoutComments(in)); }

Declarations DeclarationsOf(const pb::FileDescriptor& file) {
  return DescriptorReader().Read(file);
}

std::vector<std::string> Differences(const Declarations& table, const Declarations& proto) {
  std::vector<std::string> differences;
  for (const auto& [name, text] : table) {
    const auto other = proto.find(name);
    if (other == proto.end()) {
      differences.push_back(name + ": in the table alone, as \"" + text + "\"");
    } else if (other->second != text) {
      differences.push_back(name + ": \"" + text + "\" in the table, \"" + other->second +
                            "\" in the proto");
    }
  }
  for (const auto& [name, text] : proto) {
    if (table.count(name) == 0) {
      differences.push_back(name + ": in the proto alone, as \"" + text + "\"");
    }
  }
  return differences;
}

std::vector<std::string> LevelProblems(const ProtoTable& table) {
  std::vector<std::string> problems;
  for (const auto& [name, text] : table.declarations) {
    for (const std::string& word : Words(text)) {
      for (const char* kind : {"message ", "enum "}) {
        const std::string level = LevelOf(table, kind + word);
        if (!level.empty() && level != LevelWithin(table, name)) {
          problems.push_back(name + ": uses " + word + ", which is " + level);
        }
      }
    }
  }
  return problems;
}

}  // namespace volumed
