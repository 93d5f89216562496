// What tests make of the declarations of base/wire_fields.h: values of which every field is set,
// and what is wrong with a declaration.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/wire_fields.h"

namespace volumed {

// Converts to whatever a member is.
struct AnyMember {
  template <typename T>
  operator T() const;  // NOLINT: implicit
};

template <typename T, typename... Members>
constexpr size_t MemberCount() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; }) {
    return MemberCount<T, Members..., AnyMember>();
  } else {
    return sizeof...(Members);
  }
}

// The structs among the members of T, and among their members, whose fields T declares in place of
// them; a test specialises it.
template <typename T>
struct FlatParts {
  using Types = std::tuple<>;
};

// How many members T and its flat parts have.
template <typename T, typename... Parts>
constexpr size_t DeclaredCount(std::type_identity<std::tuple<Parts...>> /*parts*/) {
  return (MemberCount<T>() + ... + (MemberCount<Parts>() - 1));
}

// Sets every field to a value of its own that is not its default, the same ones each time.
class WireFiller {
 public:
  template <typename T>
  void operator()(uint32_t /*number*/, T& value) {
    Fill(value);
  }
  template <typename T>
  void Text(uint32_t /*number*/, T& value) {
    value = T("text " + std::to_string(++count_));
  }
  template <typename T>
  void If(uint32_t /*number*/, T& message, bool /*condition*/) {
    Fill(message);
  }
  template <typename T>
  void OptionalList(uint32_t /*is_set*/, uint32_t /*number*/, T& list) {
    Fill(list);
  }
  template <typename... Kinds>
  void OneOf(std::variant<Kinds...>& value) {
    Fill(value);
  }
  template <typename Variant>
  void OneOf(Result<Variant>& result, uint32_t /*error_number*/) {
    Variant value;
    Fill(value);
    result = std::move(value);
  }
  template <typename T>
  void NotSent(T& /*member*/) {}

  template <typename T>
  void Fill(T& value) {
    using namespace wire;  // NOLINT: its words for types
    ++count_;
    if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(1);
    } else if constexpr (kIsDuration<T>) {
      value = T(count_);
    } else if constexpr (kIsVarint<T>) {
      value = Number<T>();
    } else if constexpr (kIsBytes<T>) {
      value = T("bytes\xff " + std::to_string(count_));
    } else {
      FillParts(value);
    }
  }

 private:
  // With the highest bit, and below zero where that is an int.
  template <typename T>
  T Number() const {
    if constexpr (std::is_same_v<T, int64_t>) return (int64_t{1} << 40) + count_;
    if constexpr (std::is_signed_v<T>) return static_cast<T>(-count_);
    return static_cast<T>((uint64_t{1} << (sizeof(T) * 8 - 1)) + static_cast<uint64_t>(count_));
  }

  template <typename T>
  void FillParts(T& value) {
    using namespace wire;  // NOLINT: its words for types
    if constexpr (kIs<std::optional, T>) {
      Fill(value.emplace());
    } else if constexpr (kIs<std::vector, T>) {
      value.resize(2);
      for (auto& element : value) Fill(element);
    } else if constexpr (kIs<std::map, T>) {
      typename T::key_type key{};
      typename T::mapped_type element{};
      if constexpr (kIsBytes<typename T::key_type>) {
        Fill(key);
        Fill(element);
      } else {
        Fill(element);
        key = static_cast<typename T::key_type>(count_);
      }
      value.emplace(std::move(key), std::move(element));
    } else if constexpr (kIs<std::variant, T>) {
      Fill(value.template emplace<2>());
    } else {
      WireFieldsOf<T>::WireFields(*this, value);
    }
  }

  int count_ = 0;
};

template <typename T>
T Filled() {
  T value{};
  WireFiller().Fill(value);
  return value;
}

// What is wrong with a declaration, and with those of its fields.
class WireDeclaration {
 public:
  template <typename T>
  static std::string ProblemOf() {
    T value = Filled<T>();
    WireDeclaration seen;
    WireFieldsOf<T>::WireFields(seen, value);
    constexpr size_t kThereAre =
        DeclaredCount<T>(std::type_identity<typename FlatParts<T>::Types>());
    if (seen.problem_.empty() && seen.members_.size() != kThereAre) {
      seen.problem_ = std::to_string(seen.members_.size()) + " of " + std::to_string(kThereAre) +
                      " members are declared";
    }
    return seen.problem_;
  }

  template <typename T>
  void operator()(uint32_t number, T& value) {
    Add(value);
    AddNumber(number);
    if constexpr (!wire::kIsVarint<T> && !wire::kIsBytes<T>) Look(number, value);
  }
  template <typename T>
  void Text(uint32_t number, T& value) {
    (*this)(number, value);
  }
  template <typename T>
  void If(uint32_t number, T& message, bool condition) {
    (*this)(number, message);
    if (!condition) problem_ = std::to_string(number) + " is left out of a message that is full";
  }
  template <typename T>
  void OptionalList(uint32_t is_set, uint32_t number, T& list) {
    AddNumber(is_set);
    (*this)(number, list);
  }
  template <typename... Kinds>
  void OneOf(std::variant<Kinds...>& value) {
    Add(value);
    AddKinds<Kinds...>({});
  }
  template <typename... Kinds>
  void OneOf(Result<std::variant<Kinds...>>& result, uint32_t error_number) {
    Add(result);
    AddKinds<Kinds...>({error_number});
  }
  template <typename T>
  void NotSent(T& member) {
    Add(member);
  }

 private:
  void Add(const auto& member) {
    if (!members_.insert(&member).second) problem_ = "a member is declared twice";
  }
  void AddNumber(uint32_t number) {
    if (number <= last_) problem_ = std::to_string(number) + " comes behind a number as high";
    last_ = number;
  }
  template <typename... Kinds>
  void AddKinds(std::set<uint32_t> numbers) {
    const bool differ = (numbers.insert(Kinds::kWireNumber).second && ...);
    if (!differ) problem_ = "two of one choice have the same number";
    if (*numbers.begin() <= last_) problem_ = "a choice has the number of a field";
  }

  template <typename T>
  void Look(uint32_t number, T& value) {
    using namespace wire;  // NOLINT: its words for types
    if constexpr (kIs<std::optional, T>) {
      if constexpr (!kIsVarint<typename T::value_type>) Look(number, *value);
    } else if constexpr (kIs<std::vector, T>) {
      if constexpr (!kIsVarint<typename T::value_type> && !kIsBytes<typename T::value_type>) {
        Look(number, value.front());
      }
    } else if constexpr (!kIsBytes<T> && !kIs<std::map, T> && !kIs<std::variant, T>) {
      const std::string problem = ProblemOf<T>();
      if (!problem.empty()) problem_ = "in " + std::to_string(number) + ": " + problem;
    }
  }

  std::set<const void*> members_;
  uint32_t last_ = 0;
  std::string problem_;
};

}  // namespace volumed
