// DecodeWire: the bytes of a protobuf message as the value that base/wire_fields.h says it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/wire_fields.h"

namespace google::protobuf::io {
class CodedInputStream;
}

namespace volumed {

// What became of some bytes. Only a kRead value may be used.
enum class WireOutcome {
  kRead,
  kMalformed,   // no protobuf message, nested too deep, or text that is no UTF-8
  kIncomplete,  // a message, but one that had to be one of several is none of them
};

namespace wire {

// The bytes that are left, and what was wrong with those before. `stream` outlives it. All
// functions that return false or 0 for malformed bytes leave it at a place from which nobody may
// read on.
//
// Threads: one at a time. Blocks: never.
class WireInput {
 public:
  explicit WireInput(google::protobuf::io::CodedInputStream& stream) : stream_(stream) {}

  // The next field of the message; 0 at its end, and if it is malformed.
  uint32_t ReadTag();
  // Read what the tag announced. They return false if the bytes end before, and then nobody may
  // read on.
  bool ReadVarint(uint64_t& value);
  bool ReadBytes(std::string& bytes);
  // Passes over a field that nobody knows. False: it is malformed.
  bool Skip(uint32_t tag);
  // Everything up to the end of the message, or of a list in it, was read.
  bool AtLimit() const;
  // Calls `read` for the message that comes next, and passes over nothing else.
  template <typename Read>
  bool ReadMessage(Read&& read) {
    int limit = 0;
    if (!EnterMessage() || !Enter(limit)) return false;
    const bool is_read = read() && Leave(limit);
    LeaveMessage();
    return is_read;
  }
  // Likewise for numbers that are packed, which are no message.
  template <typename Read>
  bool ReadPacked(Read&& read) {
    int limit = 0;
    return Enter(limit) && read() && Leave(limit);
  }

  // Says that a message lacks one of several that it had to hold; the rest is read all the same.
  void MarkIncomplete() { incomplete_ = true; }
  bool incomplete() const { return incomplete_; }
  // Whether the last tag was none, as against the end of the message, which ReadTag() answers
  // alike.
  bool is_malformed() const { return is_malformed_; }

 private:
  bool EnterMessage();
  void LeaveMessage();
  bool Enter(int& limit);
  bool Leave(int limit);
  bool SkipGroup(uint32_t number);

  google::protobuf::io::CodedInputStream& stream_;
  bool incomplete_ = false;
  bool is_malformed_ = false;
};

bool IsUtf8(std::string_view text);

// Sets every field to what it is if the bytes do not have it, so that no default of the struct
// shows through. A variant has no such value and stays. A member that is not sent keeps what it
// has.
class WireClearer {
 public:
  template <typename T>
  void operator()(uint32_t /*number*/, T& value) {
    if constexpr (kIsVarint<T>) {
      value = static_cast<T>(0);
    } else if constexpr (kIsBytes<T> || kIs<std::optional, T> || kIs<std::vector, T> ||
                         kIs<std::map, T>) {
      value = T();
    } else if constexpr (!kIs<std::variant, T>) {
      WireFieldsOf<T>::WireFields(*this, value);
    }
  }
  template <typename T>
  void Text(uint32_t number, T& value) {
    (*this)(number, value);
  }
  template <typename T>
  void If(uint32_t number, T& message, bool /*condition*/) {
    (*this)(number, message);
  }
  template <typename T>
  void OptionalList(uint32_t /*is_set*/, uint32_t /*number*/, T& list) {
    list.reset();
  }
  template <typename T>
  void OneOf(T& /*value*/) {}
  template <typename T>
  void OneOf(T& /*result*/, uint32_t /*error_number*/) {}
  template <typename T>
  void NotSent(T& /*member*/) {}
};

// A value as if it was read from no bytes at all.
template <typename T>
T Cleared() {
  T value{};
  if constexpr (!kIsBytes<T>) {
    WireClearer clearer;
    clearer(0, value);
  }
  return value;
}

// Reads the fields of one message. Of each field of the bytes it visits the declaration, and takes
// it by its tag; a field that comes a second time is treated as protobuf does: a message is merged,
// a list goes on, anything else is replaced.
class WireReader {
 public:
  explicit WireReader(WireInput& input) : input_(input) {}

  // False: malformed. What was read up to there stays in `message`.
  template <typename T>
  bool Read(T& message) {
    while ((tag_ = input_.ReadTag()) != 0) {
      is_taken_ = false;
      WireFieldsOf<T>::WireFields(*this, message);
      if (!is_taken_) ok_ = input_.Skip(tag_);
      if (!ok_) return false;
    }
    // No field has the tag 0, so that this only tells whether one of several had to be there.
    WireFieldsOf<T>::WireFields(*this, message);
    if (needs_one_ && !has_one_) input_.MarkIncomplete();
    return !input_.is_malformed();
  }

  // Takes the field at hand if it has this number and the type that T is written with. A field of
  // another type is passed over, as one that nobody knows.
  template <typename T>
  void operator()(uint32_t number, T& value) {
    if constexpr (kIs<std::vector, T>) {
      List(number, value);
    } else if constexpr (kIs<std::map, T>) {
      if (Takes(number, WireType::kLengthDelimited)) ok_ = Entry(value);
    } else if constexpr (kIs<std::optional, T>) {
      using Value = typename T::value_type;
      if (!Takes(number, TypeOf<Value>())) return;
      if (!value) value = Cleared<Value>();
      ok_ = Field(*value);
    } else {
      if constexpr (kIs<std::variant, T>) needs_one_ = true;
      if (!Takes(number, TypeOf<T>())) return;
      if constexpr (kIs<std::variant, T>) has_one_ = true;
      ok_ = Field(value);
    }
  }

  // As above; bytes that are no UTF-8 make the message malformed.
  template <typename T>
  void Text(uint32_t number, T& value) {
    const bool is_mine = !is_taken_ && tag_ == Tag(number, WireType::kLengthDelimited);
    (*this)(number, value);
    if (is_mine) ok_ = ok_ && IsUtf8(BytesOf(value));
  }
  template <typename T>
  void If(uint32_t number, T& message, bool /*condition*/) {
    (*this)(number, message);
  }
  // Whether the list is set comes before its elements: elements before that are read and dropped.
  template <typename T>
  void OptionalList(uint32_t is_set, uint32_t number, std::optional<std::vector<T>>& list) {
    if (Takes(is_set, WireType::kVarint)) {
      uint64_t value = 0;
      ok_ = input_.ReadVarint(value);
      if (value == 0) list.reset();
      if (value != 0 && !list) list.emplace();
      return;
    }
    // What is listed without being set counts for nothing.
    std::vector<T> nowhere;
    List(number, list ? *list : nowhere);
  }
  // Of several kinds in the bytes the last one is kept; one that comes twice in a row is merged.
  template <typename... Kinds>
  void OneOf(std::variant<Kinds...>& value) {
    needs_one_ = true;
    (Kind<Kinds>(value), ...);
  }
  // Of an answer and an error the one that comes last is kept.
  template <typename... Kinds>
  void OneOf(Result<std::variant<Kinds...>>& result, uint32_t error_number) {
    if (Takes(error_number, WireType::kLengthDelimited)) {
      ErrorMessage error;
      ok_ = Field(error);
      result = ToError(error);
      return;
    }
    (KindOf<Kinds>(result), ...);
  }
  template <typename T>
  void NotSent(T& /*member*/) {}

 private:
  template <typename T>
  static constexpr WireType TypeOf() {
    return kIsVarint<T> ? WireType::kVarint : WireType::kLengthDelimited;
  }

  bool Takes(uint32_t number, WireType type) {
    if (is_taken_ || tag_ != Tag(number, type)) return false;
    is_taken_ = true;
    return true;
  }

  // Any number may be the code; what of the text cannot be shown is escaped.
  static Error ToError(const ErrorMessage& message);

  template <typename T>
  bool Field(T& value) {
    if constexpr (kIsVarint<T>) {
      return Varint(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return input_.ReadBytes(value);
    } else if constexpr (kIsBytes<T>) {
      std::string bytes;
      if (!input_.ReadBytes(bytes)) return false;
      value = T(std::move(bytes));
      return true;
    } else {
      return input_.ReadMessage([this, &value] { return Message(value); });
    }
  }

  template <typename T>
  bool Varint(T& value) {
    uint64_t number = 0;
    if (!input_.ReadVarint(number)) return false;
    if constexpr (std::is_same_v<T, bool>) {
      value = number != 0;
    } else if constexpr (kIsDuration<T>) {
      value = T(static_cast<typename T::rep>(number));
    } else if constexpr (requires { WireEnumOf(value); }) {
      const auto known = WireEnumOf(value);
      const auto small = static_cast<uint32_t>(number);
      value = small <= static_cast<uint32_t>(known.last) ? static_cast<T>(small) : known.otherwise;
    } else {
      value = static_cast<T>(number);  // protobuf too drops the bits for which there is no place
    }
    return true;
  }

  template <typename T>
  bool Message(T& value) {
    if constexpr (kIs<std::vector, T>) {
      ListMessage<T> list{value};
      return WireReader(input_).Read(list);
    } else if constexpr (kIs<std::variant, T>) {
      OneOfMessage<T> one{value};
      return WireReader(input_).Read(one);
    } else {
      return WireReader(input_).Read(value);
    }
  }

  template <typename T>
  void List(uint32_t number, std::vector<T>& list) {
    if (Takes(number, TypeOf<T>())) {
      list.push_back(Cleared<T>());
      ok_ = Field(list.back());
    } else if constexpr (kIsVarint<T>) {
      if (Takes(number, WireType::kLengthDelimited)) {
        ok_ = input_.ReadPacked([this, &list] { return Packed(list); });
      }
    }
  }

  template <typename T>
  bool Packed(std::vector<T>& list) {
    while (!input_.AtLimit()) {
      T value{};
      if (!Varint(value)) return false;
      list.push_back(value);
    }
    return true;
  }

  template <typename Map>
  bool Entry(Map& map) {
    auto entry = Cleared<MapEntry<typename Map::key_type, typename Map::mapped_type>>();
    if (!Field(entry)) return false;
    map.insert_or_assign(std::move(entry.key), std::move(entry.value));
    return true;
  }

  template <typename Alternative, typename Variant>
  void Kind(Variant& value) {
    if (!Takes(Alternative::kWireNumber, WireType::kLengthDelimited)) return;
    if (!has_one_ || !std::holds_alternative<Alternative>(value)) value = Cleared<Alternative>();
    has_one_ = true;
    ok_ = Field(std::get<Alternative>(value));
  }

  template <typename Alternative, typename Variant>
  void KindOf(Result<Variant>& result) {
    if (!Takes(Alternative::kWireNumber, WireType::kLengthDelimited)) return;
    if (!result.ok() || !std::holds_alternative<Alternative>(*result)) {
      result = Variant(Cleared<Alternative>());
    }
    ok_ = Field(std::get<Alternative>(*result));
  }

  WireInput& input_;
  uint32_t tag_ = 0;
  bool is_taken_ = false;
  bool ok_ = true;
  bool needs_one_ = false;
  bool has_one_ = false;
};

// Reads a message of a type that the function knows to `value`; false: malformed.
using ReadFrom = bool (*)(WireInput&, void*);
// DecodeWire() without the type, so that its body is compiled once.
WireOutcome DecodeBytes(std::string_view bytes, ReadFrom read, void* value);

}  // namespace wire

// Sets `value` to what the bytes say. Fields that it does not declare are passed over; a field that
// the bytes lack is zero or empty, but a variant, or a Result of one, stays as it is. For a variant
// that the bytes have no kind for, the answer is kIncomplete; a Result that they have neither a
// kind nor an error for is no such case, so it should hold an error before.
//
// Threads: any. Blocks: never. Unless it answers kRead, part of the value may be set. REQUIRES:
// fewer than 2 GiB. Messages may be nested 100 deep, protobuf's own limit.
template <typename T>
WireOutcome DecodeWire(std::string_view bytes, T& value) {
  wire::WireClearer clearer;
  clearer(0, value);
  const auto read = [](wire::WireInput& input, void* to) {
    return wire::WireReader(input).Read(*static_cast<T*>(to));
  };
  return wire::DecodeBytes(bytes, read, &value);
}

}  // namespace volumed
