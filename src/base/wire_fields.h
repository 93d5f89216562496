// How a struct declares, once, what it is as a protobuf message. WireWriter, WireReader and whoever
// else asks (does it hold a secret? are all members declared?) visit the declaration.
//
//   struct MakeFile {
//     SafePath path;
//     uint32_t mode = 0644;
//     static void WireFields(auto& v, auto& m) {
//       v(1, m.path);
//       v(2, m.mode);
//     }
//   };
//
// The numbers are protobuf's field numbers: they rise from line to line, since messages are written
// in this order, and one that was used is never used again. A struct of another folder is declared
// by a specialisation of WireFieldsOf. How a member is written follows from its type, as proto3 has
// it:
//   bool, integers, enums        a varint; left out if zero
//   std::string, StrongId        bytes; left out if empty
//   Secret<std::string>          likewise
//   std::chrono::duration        its count, as an int64
//   a struct that declares       a message; always written
//   std::optional of these       the same, left out only if it is unset
//   std::vector<integer>         packed; left out if empty
//   std::vector of the others    one field for each element
//   std::map                     an entry message for each element: 1 is its key, 2 its value
//   std::optional<std::vector>   a message whose field 1 is the list
//   std::variant of structs      a message that holds one of them: see OneOf
// What is missing from the bytes is zero or empty, whatever default the member has in its struct.
// A number that is no value of an enum is kept as it is, unless WireEnumOf says otherwise.
//
// What else a declaration may say of a member:
//   v.Text(1, m.name)            a string or StrongId that is text: bytes that are no UTF-8
//                                make the whole message unreadable, as protobuf's `string`
//                                does
//   v.If(7, m.object, condition) a message that is left out unless the condition holds
//   v.OptionalList(4, 5, m.list) an optional list as a bool, whether it is set, and the list
//   v.OneOf(m.variant)           the struct that it holds, under that struct's kWireNumber
//   v.OneOf(m.result, 1)         likewise of a Result of a variant; an Error under the number given
//   v.NotSent(m.handle)          no part of the message: it is left as it is
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/secret.h"
#include "base/wire_enum.h"

namespace volumed {

// Whoever visits a struct asks this, so that a declaration may stand beside the struct as well as
// in it. `v` is the visitor; `m` is the value, const if it is only read.
template <typename T>
struct WireFieldsOf {
  static void WireFields(auto& v, auto& m) { T::WireFields(v, m); }
};

namespace wire {

template <template <typename...> class Template, typename T>
inline constexpr bool kIs = false;
template <template <typename...> class Template, typename... Args>
inline constexpr bool kIs<Template, Template<Args...>> = true;

template <typename T>
inline constexpr bool kIsDuration = false;
template <typename Rep, typename Period>
inline constexpr bool kIsDuration<std::chrono::duration<Rep, Period>> = true;

template <typename T>
inline constexpr bool kIsVarint = std::is_integral_v<T> || std::is_enum_v<T> || kIsDuration<T>;
template <typename T>
inline constexpr bool kIsBytes =
    std::is_same_v<T, std::string> || kIs<StrongId, T> || kIs<Secret, T>;

// The types of a field that this uses. Source: protobuf.dev/programming-guides/encoding.
enum class WireType : uint32_t { kVarint = 0, kLengthDelimited = 2 };

constexpr uint32_t Tag(uint32_t number, WireType type) {
  return number << 3 | static_cast<uint32_t>(type);
}

inline const std::string& BytesOf(const std::string& text) { return text; }
template <typename Of>
const std::string& BytesOf(const StrongId<Of>& id) {
  return id.str();
}
inline const std::string& BytesOf(const Secret<std::string>& secret) { return secret.Reveal(); }

// A list in a message of its own, and an entry of a map.
template <typename List>
struct ListMessage {
  List& list;
  static void WireFields(auto& v, auto& m) { v(1, m.list); }
};
template <typename Key, typename Value>
struct MapEntry {
  Key key{};
  Value value{};
  static void WireFields(auto& v, auto& m) {
    v(1, m.key);
    v(2, m.value);
  }
};
template <typename Variant>
struct OneOfMessage {
  Variant& value;
  static void WireFields(auto& v, auto& m) { v.OneOf(m.value); }
};

// An Error as a message, in place of what should have been answered. Error::about() is not in it.
struct ErrorMessage {
  int32_t code = 0;
  bool maybe_applied = false;
  int32_t sys_errno = 0;
  std::string message;
  static void WireFields(auto& v, auto& m) {
    v(1, m.code);
    v(2, m.maybe_applied);
    v(3, m.sys_errno);
    v(4, m.message);
  }
};

}  // namespace wire
}  // namespace volumed
