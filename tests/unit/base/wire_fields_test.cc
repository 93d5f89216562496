// What comes of a struct's fields on the wire, and which bytes are no message. The bytes are
// written out as protobuf's encoding has them.
#include "base/wire_fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/wire_reader.h"
#include "base/wire_writer.h"

namespace volumed {
namespace {

using namespace std::string_literals;

struct Leaf {
  std::string name;
  int64_t size = 7;
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.name);
    v(2, m.size);
  }
  friend bool operator==(const Leaf&, const Leaf&) = default;
};

struct Tree {
  Leaf leaf;
  std::optional<Leaf> other;
  std::vector<int32_t> numbers;
  std::vector<Leaf> leaves;
  std::map<std::string, int64_t> sizes;
  std::optional<std::vector<std::string>> names;
  static void WireFields(auto& v, auto& m) {
    v(1, m.leaf);
    v(2, m.other);
    v(3, m.numbers);
    v(4, m.leaves);
    v(5, m.sizes);
    v.OptionalList(6, 7, m.names);
  }
  friend bool operator==(const Tree&, const Tree&) = default;
};

struct Nested {
  std::vector<Nested> inner;
  static void WireFields(auto& v, auto& m) { v(1, m.inner); }
};

struct Word {
  static constexpr uint32_t kWireNumber = 2;
  std::string text;
  static void WireFields(auto& v, auto& m) { v(1, m.text); }
};
struct Number {
  static constexpr uint32_t kWireNumber = 3;
  int32_t value = 0;
  static void WireFields(auto& v, auto& m) { v(1, m.value); }
};
struct Choice {
  std::variant<Word, Number> value;
  static void WireFields(auto& v, auto& m) { v(1, m.value); }
};

template <typename T>
WireOutcome OutcomeOf(std::string_view bytes) {
  T value;
  return DecodeWire(bytes, value);
}

TEST(WireFieldsTest, AStructIsTheBytesOfItsMessage) {
  Tree tree;
  tree.leaf = {"a", 300};
  tree.other = Leaf{"", 0};
  tree.numbers = {1, -1};
  tree.leaves = {{"b", 0}};
  tree.sizes = {{"k", 5}};
  tree.names = {{"x"}};
  const std::string bytes =
      "\x0a\x06\x0a\x01"
      "a\x10\xac\x02"
      "\x12\x00"
      "\x1a\x0b\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
      "\x22\x03\x0a\x01"
      "b"
      "\x2a\x05\x0a\x01k\x10\x05"
      "\x30\x01\x3a\x01x"s;
  EXPECT_EQ(EncodeWire(tree), bytes);
  Tree read;
  ASSERT_EQ(DecodeWire(bytes, read), WireOutcome::kRead);
  EXPECT_EQ(read, tree);
}

TEST(WireFieldsTest, WhatIsMissingIsZeroWhateverItsDefault) {
  Leaf leaf{"before", 9};
  ASSERT_EQ(DecodeWire("", leaf), WireOutcome::kRead);
  EXPECT_EQ(leaf, (Leaf{"", 0}));
}

TEST(WireFieldsTest, AFieldOfAnyTypeThatNobodyKnowsIsPassedOver) {
  const std::string known = "\x10\x05"s;
  const std::string unknown[] = {
      "\x78\x80\x01"s,                          // a varint
      "\x79\x01\x02\x03\x04\x05\x06\x07\x08"s,  // eight bytes
      "\x7a\x02zz"s,                            // bytes
      "\x7b\x08\x01\x13\x14\x7c"s,              // a group, with a field and a group in it
      "\x7d\x01\x02\x03\x04"s,                  // four bytes
      "\x0d\x01\x02\x03\x04"s,                  // a number that is known, as four bytes
      "\x08\x01"s,                              // a number that is known, as a varint
  };
  for (const std::string& field : unknown) {
    for (const std::string& bytes : {field + known, known + field}) {
      Leaf leaf;
      ASSERT_EQ(DecodeWire(bytes, leaf), WireOutcome::kRead) << testing::PrintToString(bytes);
      EXPECT_EQ(leaf, (Leaf{"", 5})) << testing::PrintToString(bytes);
    }
  }
}

TEST(WireFieldsTest, WhatIsNoMessageIsMalformed) {
  const std::string malformed[] = {
      "\x10"s,                                              // no value
      "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s,  // a varint of eleven bytes
      "\x0a\x05"
      "abc"s,                           // fewer bytes than it says
      "\x0a\x01\xff"s,                  // text that is no UTF-8
      "\x00"s,                          // the field 0
      "\x02\x00"s,                      // likewise
      "\x7b\x08\x01"s,                  // a group without an end
      "\x7b\x08\x01\x74"s,              // a group that another one's end closes
      "\x7b\x00\x7c"s,                  // a group with the field 0
      "\x7c"s,                          // an end without a group
      "\x7e"s,                          // a type that there is not
      "\x79\x01\x02"s,                  // fewer than eight bytes
      "\x7d\x01\x02"s,                  // fewer than four
      "\x90\x80\x80\x80\x80\x00\x05"s,  // a tag of six bytes
  };
  for (const std::string& bytes : malformed) {
    EXPECT_EQ(OutcomeOf<Leaf>(bytes), WireOutcome::kMalformed) << testing::PrintToString(bytes);
  }
  EXPECT_EQ(OutcomeOf<Tree>("\x0a\x03\x10\x05"s), WireOutcome::kMalformed) << "cut in a message";
  EXPECT_EQ(OutcomeOf<Tree>("\x0a\x01\x10\x05"s), WireOutcome::kMalformed)
      << "a message that ends amid a field";
  EXPECT_EQ(OutcomeOf<Tree>("\x1a\x02\x01\xff"s), WireOutcome::kMalformed)
      << "a list that ends amid a number";
}

TEST(WireFieldsTest, AMessageThatComesTwiceIsMergedAndAListGoesOn) {
  Tree tree;
  ASSERT_EQ(DecodeWire("\x0a\x03\x0a\x01"
                       "a\x0a\x02\x10\x05"
                       "\x18\x01\x1a\x02\x02\x03\x18\x04"s,
                       tree),
            WireOutcome::kRead);
  EXPECT_EQ(tree.leaf, (Leaf{"a", 5}));
  EXPECT_EQ(tree.numbers, (std::vector<int32_t>{1, 2, 3, 4}));
}

TEST(WireFieldsTest, AListThatIsNotSetHasNothing) {
  Tree tree;
  ASSERT_EQ(DecodeWire("\x3a\x01x"s, tree), WireOutcome::kRead);
  EXPECT_FALSE(tree.names.has_value());
  ASSERT_EQ(DecodeWire("\x30\x01"s, tree), WireOutcome::kRead);
  EXPECT_EQ(tree.names, std::vector<std::string>());
  ASSERT_EQ(DecodeWire("\x30\x01\x3a\x01x\x30\x00"s, tree), WireOutcome::kRead);
  EXPECT_FALSE(tree.names.has_value()) << "the last word counts";
}

TEST(WireFieldsTest, OneOfSeveralHasToBeThere) {
  const std::string bytes = "\x0a\x04\x1a\x02\x08\x04"s;
  EXPECT_EQ(EncodeWire(Choice{Number{4}}), bytes);
  Choice read;
  ASSERT_EQ(DecodeWire(bytes, read), WireOutcome::kRead);
  EXPECT_EQ(std::get<Number>(read.value).value, 4);
  EXPECT_EQ(OutcomeOf<Choice>(""), WireOutcome::kIncomplete);
  EXPECT_EQ(OutcomeOf<Choice>("\x0a\x00"s), WireOutcome::kIncomplete);
}

// protobuf's own parsers take a hundred messages in each other.
TEST(WireFieldsTest, MessagesAreNestedAHundredTimesAtMost) {
  Nested value;
  for (int i = 0; i < 100; ++i) value = Nested{{value}};
  EXPECT_EQ(OutcomeOf<Nested>(EncodeWire(value)), WireOutcome::kRead);
  value = Nested{{value}};
  EXPECT_EQ(OutcomeOf<Nested>(EncodeWire(value)), WireOutcome::kMalformed);
  std::string groups(100, '\x7b');
  groups += std::string(100, '\x7c');
  EXPECT_EQ(OutcomeOf<Leaf>(groups), WireOutcome::kRead);
  EXPECT_EQ(OutcomeOf<Leaf>("\x7b" + groups + "\x7c"), WireOutcome::kMalformed);
}

}  // namespace
}  // namespace volumed
