#include "kube/field_reader.h"

#include "base/base64.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

std::string_view TypeName(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return "a number";
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return "an unknown type";
}

std::string MustBe(std::string_view wanted, const Json& value) {
  return "must be " + std::string(wanted) + ", not " + std::string(TypeName(value));
}

std::string OutOfRange(const IntRule& rule) {
  return "must be from " + std::to_string(rule.min) + " to " + std::to_string(rule.max);
}

// nullopt for a float and for an unsigned number beyond int64.
std::optional<int64_t> IntOf(const Json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  return std::nullopt;
}

// Kubernetes takes a quantity as text or as a bare number.
Result<Quantity> QuantityOf(const Json& value) {
  return Quantity::Parse(value.is_string() ? value.get_ref<const std::string&>() : value.dump());
}

}  // namespace

void ProblemSink::set_object(const std::string& object) {
  object_ = object;
  for (DecodeProblem& problem : problems_) problem.object = object;
}

void ProblemSink::Add(std::string field_path, std::string reason) {
  if (problems_.size() >= kMaxProblemsPerDocument) {
    ++dropped_;
    return;
  }
  problems_.push_back({file_, document_, object_, std::move(field_path), std::move(reason)});
}

std::vector<DecodeProblem> ProblemSink::Take() {
  if (dropped_ > 0) {
    problems_.push_back(
        {file_, document_, object_, "", std::to_string(dropped_) + " more problems"});
    dropped_ = 0;
  }
  return std::exchange(problems_, {});
}

std::string FieldReader::PathOf(std::string_view name) const {
  if (path_.empty()) return std::string(name);
  std::string path = path_;
  path += '.';
  path += name;
  return path;
}

void FieldReader::Problem(std::string_view name, std::string reason) {
  ++problem_count_;
  problems_.Add(PathOf(name), std::move(reason));
}

const Json* FieldReader::Find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool FieldReader::IsNonEmptyText(const char* name) const {
  const Json* value = Find(name);
  return value != nullptr && value->is_string() && !value->get_ref<const std::string&>().empty();
}

bool FieldReader::CheckObject(const Json& value, const std::string& path) {
  if (value.is_object()) return true;
  ++problem_count_;
  problems_.Add(path, MustBe("an object", value));
  return false;
}

const Json* FieldReader::FindObject(const char* name, Presence presence) {
  const Json* value = Find(name);
  if (value == nullptr) {
    if (presence == Presence::kRequired) Problem(name, "is required");
    return nullptr;
  }
  return CheckObject(*value, PathOf(name)) ? value : nullptr;
}

const Json* FieldReader::FindArray(const char* name, Presence presence) {
  const Json* value = Find(name);
  if (value != nullptr && !value->is_array()) {
    Problem(name, MustBe("a list", *value));
    return nullptr;
  }
  if (value == nullptr || value->empty()) {
    if (presence == Presence::kRequired) Problem(name, "is required");
    return nullptr;
  }
  return value;
}

std::optional<std::string> FieldReader::WhyRefused(const TextRule& rule,
                                                   std::string_view text) const {
  const bool is_path_name =
      &rule == &rules::kUid || &rule == &rules::kDnsLabel || &rule == &rules::kDnsSubdomain;
  if (problems_.rules() == DecodeRules::kStored && !is_path_name) return std::nullopt;
  return rule.broken(text);
}

std::optional<std::string> FieldReader::ReadText(const char* name, const TextRule& rule,
                                                 Presence presence) {
  const Json* value = Find(name);
  if (value != nullptr && !value->is_string()) {
    Problem(name, MustBe("a string", *value));
    return std::nullopt;
  }
  if (value == nullptr || value->get_ref<const std::string&>().empty()) {
    if (presence == Presence::kRequired) Problem(name, "is required");
    return std::nullopt;
  }
  const std::string& text = value->get_ref<const std::string&>();
  if (std::optional<std::string> reason = WhyRefused(rule, text)) {
    Problem(name, *std::move(reason));
    return std::nullopt;
  }
  return text;
}

std::optional<int64_t> FieldReader::ReadInt(const char* name, const IntRule& rule,
                                            Presence presence) {
  const Json* value = Find(name);
  if (value == nullptr) {
    if (presence == Presence::kRequired) Problem(name, "is required");
    return std::nullopt;
  }
  if (!value->is_number()) {
    Problem(name, MustBe("an integer", *value));
    return std::nullopt;
  }
  if (value->is_number_float()) {
    Problem(name, "must be an integer, not a fraction");
    return std::nullopt;
  }
  const std::optional<int64_t> number = IntOf(*value);
  if (!number || *number < rule.min || *number > rule.max) {
    Problem(name, OutOfRange(rule));
    return std::nullopt;
  }
  return number;
}

void FieldReader::Text(const char* name, std::string& out, const TextRule& rule,
                       Presence presence) {
  if (std::optional<std::string> text = ReadText(name, rule, presence)) out = *std::move(text);
}

void FieldReader::Text(const char* name, std::optional<std::string>& out, const TextRule& rule) {
  const Json* value = Find(name);
  if (value != nullptr && value->is_string() && value->get_ref<const std::string&>().empty()) {
    out = "";
    return;
  }
  if (std::optional<std::string> text = ReadText(name, rule, Presence::kOptional)) {
    out = std::move(text);
  }
}

const std::string* FieldReader::TextOf(const std::string& element, const Json& value) {
  if (value.is_string()) return &value.get_ref<const std::string&>();
  Problem(element, MustBe("a string", value));
  return nullptr;
}

void FieldReader::Path(const char* name, std::string& out, const TextRule& rule,
                       Presence presence) {
  if (std::optional<std::string> text = ReadText(name, rule, presence)) out = CleanPath(*text);
}

void FieldReader::Bool(const char* name, bool& out, bool default_value) {
  std::optional<bool> value;
  Bool(name, value);
  out = value.value_or(default_value);
}

void FieldReader::Bool(const char* name, std::optional<bool>& out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (value->is_boolean()) {
    out = value->get<bool>();
  } else {
    Problem(name, MustBe("a boolean", *value));
  }
}

void FieldReader::Amount(const char* name, std::optional<Quantity>& out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_string() && !value->is_number()) {
    Problem(name, MustBe("a quantity", *value));
    return;
  }
  Result<Quantity> quantity = QuantityOf(*value);
  if (quantity.ok()) {
    out = *quantity;
  } else {
    Problem(name, quantity.error().message());
  }
}

void FieldReader::Amount(const char* name, Quantity& out, Presence presence) {
  std::optional<Quantity> amount;
  if (presence == Presence::kRequired && Find(name) == nullptr) Problem(name, "is required");
  Amount(name, amount);
  if (amount) out = *amount;
}

void FieldReader::Amounts(const char* name, ResourceList& out) {
  const Json* object = FindObject(name, Presence::kOptional);
  if (object == nullptr) return;
  FieldReader entries(*object, PathOf(name), problems_);
  for (const auto& [key, unused] : object->items()) {
    std::optional<Quantity> amount;
    entries.Amount(key.c_str(), amount);
    if (amount) out.insert_or_assign(key, *amount);
  }
}

void FieldReader::Time(const char* name, std::optional<int64_t>& out_unix_millis) {
  const std::optional<std::string> text = ReadText(name, rules::kAnyText, Presence::kOptional);
  if (!text) return;
  out_unix_millis = ParseTimestamp(*text);
  if (!out_unix_millis) Problem(name, Quoted(*text) + " is not an RFC 3339 time");
}

void FieldReader::Texts(const char* name, std::vector<std::string>& out, const TextRule& rule) {
  const Json* list = FindArray(name, Presence::kOptional);
  if (list == nullptr) return;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string element = std::string(name) + "[" + std::to_string(i) + "]";
    const std::string* text = TextOf(element, (*list)[i]);
    if (text == nullptr) continue;
    if (auto reason = WhyRefused(rule, *text)) {
      Problem(element, *std::move(reason));
    } else {
      out.push_back(*text);
    }
  }
}

void FieldReader::Ints(const char* name, std::vector<int64_t>& out, const IntRule& rule) {
  const Json* list = FindArray(name, Presence::kOptional);
  if (list == nullptr) return;
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& value = (*list)[i];
    const std::string element = std::string(name) + "[" + std::to_string(i) + "]";
    const std::optional<int64_t> number = IntOf(value);
    if (!value.is_number_integer()) {
      Problem(element, MustBe("an integer", value));
    } else if (!number || *number < rule.min || *number > rule.max) {
      Problem(element, OutOfRange(rule));
    } else {
      out.push_back(*number);
    }
  }
}

template <typename Store>
void FieldReader::ReadMap(const char* name, const TextRule& key_rule, Store store, Keys keys) {
  const Json* object = FindObject(name, Presence::kOptional);
  if (object == nullptr) return;
  for (const auto& [key, value] : object->items()) {
    const std::string entry = std::string(name) + "[" + key + "]";
    if (auto reason = key_rule.broken(key)) {
      // Somebody may have put a secret where a key belongs.
      if (keys == Keys::kMayBeSecret) {
        Problem(std::string(name) + "[?]", "has a key that is no valid " +
                                               std::string(key_rule.name) +
                                               "; it is not shown, as it may be a secret");
      } else {
        Problem(entry, *std::move(reason));
      }
    } else if (value.is_null()) {
      store(entry, key, std::string());  // as Go: the zero value
    } else if (!value.is_string()) {
      Problem(entry, MustBe("a string", value));
    } else {
      store(entry, key, value.template get_ref<const std::string&>());
    }
  }
}

template <typename Store>
void FieldReader::ReadBase64Map(const char* name, const TextRule& key_rule, Store store,
                                Keys keys) {
  ReadMap(
      name, key_rule,
      [this, &store](const std::string& entry, const std::string& key, const std::string& text) {
        if (std::optional<std::string> bytes = Base64Decode(text)) {
          store(key, *std::move(bytes));
        } else {
          Problem(entry, "is not base64");  // never the value: it may be a secret
        }
      },
      keys);
}

void FieldReader::TextMap(const char* name, StringMap& out, const TextRule& key_rule,
                          const TextRule& value_rule) {
  ReadMap(name, key_rule,
          [&](const std::string& entry, const std::string& key, const std::string& text) {
            if (auto reason = value_rule.broken(text)) {
              Problem(entry, *std::move(reason));
            } else {
              out[key] = text;
            }
          });
}

void FieldReader::BytesMap(const char* name, StringMap& out, const TextRule& key_rule) {
  ReadBase64Map(name, key_rule,
                [&out](const std::string& key, std::string bytes) { out[key] = std::move(bytes); });
}

void FieldReader::SecretBytesMap(const char* name, std::map<std::string, Secret<std::string>>& out,
                                 const TextRule& key_rule) {
  ReadBase64Map(
      name, key_rule,
      [&out](const std::string& key, std::string bytes) {
        out.insert_or_assign(key, Secret<std::string>(std::move(bytes)));
      },
      Keys::kMayBeSecret);
}

void FieldReader::SecretTextMap(const char* name, std::map<std::string, Secret<std::string>>& out,
                                const TextRule& key_rule) {
  ReadMap(
      name, key_rule,
      [&out](const std::string&, const std::string& key, const std::string& text) {
        out.insert_or_assign(key, Secret<std::string>(text));
      },
      Keys::kMayBeSecret);
}

void FieldReader::Wrapped(const char* name, const char* inner, std::vector<std::string>& out) {
  const Json* list = FindArray(name, Presence::kOptional);
  if (list == nullptr) return;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = PathOf(name) + "[" + std::to_string(i) + "]";
    if (!CheckObject((*list)[i], path)) continue;
    FieldReader element((*list)[i], path, problems_);
    std::string text;
    element.Text(inner, text);
    if (!text.empty()) out.push_back(std::move(text));
  }
}

void FieldReader::JsonText(const char* name, std::string& out, Presence presence) {
  if (const Json* object = FindObject(name, presence)) out = object->dump();
}

bool FieldReader::CountCase(const char* name, int& seen) {
  if (Find(name) == nullptr) return false;
  if (++seen == 1) return true;
  Problem(name, "more than one source is given, only one is possible");
  return false;
}

void FieldReader::Forbidden(const char* name, const char* reason) {
  if (Find(name) != nullptr) Problem(name, reason);
}

void FieldReader::RequireCase(int seen, std::string_view reason) {
  if (seen > 0) return;
  ++problem_count_;
  problems_.Add(path_, std::string(reason));
}

}  // namespace volumed
