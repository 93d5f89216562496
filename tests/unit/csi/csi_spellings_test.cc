// Texts as other programs write them: what Go, Python and a shell have made of this one.
#include "csi/rpc/csi_spellings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base64.h"
#include "csi/rpc/csi_secret_memory.h"

namespace volumed {
namespace {

constexpr std::string_view kText = "canary-\"&<'\\\u00e9\U0001f600 /+end";

struct Spelled {
  const char* by;
  std::string_view text;
};

// The bytes that are left of the text once all spellings are taken out.
std::string LeftOf(const CsiSpellings& spellings, std::string_view text) {
  std::vector<bool> places(text.size());
  size_t steps = kCsiSearchSteps;
  EXPECT_TRUE(spellings.Mark(text, false, places, steps));
  std::string left;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!places[i]) left += text[i];
  }
  return left;
}

std::string LeftOf(std::string_view wanted, std::string_view text) {
  CsiSpellings spellings;
  spellings.Add(wanted);
  return LeftOf(spellings, text);
}

TEST(CsiSpellingsTest, ATextIsFoundAsOtherProgramsWriteIt) {
  const std::vector<Spelled> cases = {
      {"itself", kText},
      {"Go's encoding/json", "canary-\\\"\\u0026\\u003c'\\\\\u00e9\U0001f600 /+end"},
      {"Go's %+q", R"(canary-\"&<'\\\u00e9\U0001f600 /+end)"},
      {"Python's json.dumps", R"(canary-\"&<'\\\u00e9\ud83d\ude00 /+end)"},
      {"json.dumps twice", R"(canary-\\\"&<'\\\\\\u00e9\\ud83d\\ude00 /+end)"},
      {"PHP's json_encode", R"(canary-\"&<'\\\u00e9\ud83d\ude00 \/+end)"},
      {"C#, in upper case", R"(canary-\u0022\u0026\u003C\u0027\\\u00E9\uD83D\uDE00 /\u002Bend)"},
      {"Python's repr()", "canary-\"&<\\'\\\\\u00e9\U0001f600 /+end"},
      {"Python's repr() of bytes", R"(canary-"&<\'\\\xc3\xa9\xf0\x9f\x98\x80 /+end)"},
      {"Python's ascii()", R"(canary-"&<\'\\\xe9\U0001f600 /+end)"},
      {"Rust's {:?}", R"(canary-\"&<'\\\u{e9}\u{1f600} /+end)"},
      {"quote()", "canary-%22%26%3C%27%5C%C3%A9%F0%9F%98%80%20/%2Bend"},
      {"quote(safe='')", "canary-%22%26%3C%27%5C%C3%A9%F0%9F%98%80%20%2F%2Bend"},
      {"quote_plus()", "canary-%22%26%3C%27%5C%C3%A9%F0%9F%98%80+%2F%2Bend"},
      {"lower-case digits", "canary-%22%26%3c%27%5c%c3%a9%f0%9f%98%80%20%2f%2bend"},
      {"quote() twice",
       "canary-%2522%2526%253C%2527%255C%25C3%25A9%25F0%259F%2598%2580%2520%252F%252Bend"},
      {"XML", "canary-&quot;&amp;&lt;&apos;\\\u00e9\U0001f600 /+end"},
      {"Python's html.escape()", "canary-&quot;&amp;&lt;&#x27;\\\u00e9\U0001f600 /+end"},
      {"Go's html.EscapeString()", "canary-&#34;&amp;&lt;&#39;\\&#233;&#128512; /+end"},
      {"Python's shlex.quote()", "canary-\"&<'\"'\"'\\\u00e9\U0001f600 /+end"},
      {"a shell's quotes", "canary-\"&<'\\''\\\u00e9\U0001f600 /+end"},
      {"bash's %q", "canary-\\\"\\&\\<\\'\\\\\u00e9\U0001f600\\ /+end"},
      {"SQL's quotes", "canary-\"&<''\\\u00e9\U0001f600 /+end"},
      {"mountinfo", "canary-\"&<'\\134\\303\\251\\360\\237\\230\\200\\040/+end"},
      {"hexadecimal digits", "63616e6172792d22263c275cc3a9f09f9880202f2b656e64"},
      {"upper-case digits", "63616E6172792D22263C275CC3A9F09F9880202F2B656E64"},
      {"base64", "Y2FuYXJ5LSImPCdcw6nwn5iAIC8rZW5k"},
      {"base64 in a URL", "Y2FuYXJ5LSImPCdcw6nwn5iAIC8rZW5k"},
  };
  for (const Spelled& c : cases) {
    EXPECT_EQ(LeftOf(kText, c.text), "") << c.by;
    const std::string amid = "login \"" + std::string(c.text) + "\" failed";
    EXPECT_EQ(LeftOf(kText, amid), "login \"\" failed") << c.by;
  }
}

TEST(CsiSpellingsTest, APasswordIsFoundInTheBase64OfUserAndPassword) {
  // Of "user:hunter2hunter2", as HTTP's "Basic" has it: what is left has no whole byte of it.
  EXPECT_EQ(LeftOf("hunter2hunter2", "Basic dXNlcjpodW50ZXIyaHVudGVyMg=="), "Basic dXNlcjp");
  // Of "u:hunter2hunter2@nas".
  EXPECT_EQ(LeftOf("hunter2hunter2", "dTpodW50ZXIyaHVudGVyMkBuYXM="), "dTpkBuYXM=");
}

// Docker's configuration, or a request that a driver logs, is a JSON that is encoded as a whole.
TEST(CsiSpellingsTest, ASecretWithQuotesWithinAJsonInBase64WasShown) {
  const std::string secret = "p\"w\\1<&>\n\u00e9\U0001f600-end";
  const std::vector<Spelled> cases = {
      {"Go's encoding/json", R"(p\"w\\1\u003c\u0026\u003e\n)"
                             "\u00e9\U0001f600-end"},
      {"Python's json.dumps", R"(p\"w\\1<&>\n\u00e9\ud83d\ude00-end)"},
      {"JavaScript's JSON.stringify", R"(p\"w\\1<&>\n)"
                                      "\u00e9\U0001f600-end"},
  };
  for (const Spelled& c : cases) {
    for (const std::string before : {R"({"pw":")", R"({"pwd":")", R"({"password": ")"}) {
      const std::string encoded = Base64Encode(before + std::string(c.text) + "\"}");
      const std::string left = LeftOf(secret, encoded);
      // But the bytes beside it, and what they share a character with.
      EXPECT_LE(left.size(), (before.size() + 2) * 4 / 3 + 5) << c.by << ": " << left;
      EXPECT_TRUE(encoded.starts_with(left.substr(0, before.size()))) << c.by << ": " << left;
    }
  }
}

TEST(CsiSpellingsTest, BothAlphabetsOfBase64AreKnown) {
  const std::string bytes = "\xfb\xff\xbe\xfb\xff\xbe";
  EXPECT_EQ(LeftOf(bytes, "+/+++/++"), "");
  EXPECT_EQ(LeftOf(bytes, "-_---_--"), "");
  EXPECT_EQ(LeftOf("abcde", "YWJjZGU="), "");
  EXPECT_EQ(LeftOf("abcde", "YWJjZGU"), "");
  EXPECT_EQ(LeftOf("abcde", "YWJjZGU%3D"), "");
}

TEST(CsiSpellingsTest, LineEndsAndTabsAreFoundEscaped) {
  EXPECT_EQ(LeftOf("line\none\t2", R"(x line\none\t2 y)"), "x  y");
  EXPECT_EQ(LeftOf("line\none\t2", R"(x line\\none\\t2 y)"), "x  y");
  EXPECT_EQ(LeftOf("line\none\t2", R"(x line\u000aone\x092 y)"), "x  y");
  EXPECT_EQ(LeftOf(R"(line\none)", R"(x line\\none y)"), "x  y");
}

// ---- What is broken into lines, or has something between its bytes ----

std::string Joined(std::string_view text, size_t columns, std::string_view between) {
  std::string all;
  for (size_t at = 0; at < text.size(); at += columns) {
    if (at > 0) all += between;
    all += text.substr(at, columns);
  }
  return all;
}

// As long as a private key's lines together, of all letters.
std::string LongSecret() {
  std::string secret;
  for (int i = 0; i < 107; ++i) secret += static_cast<char>('A' + i * 31 % 57);
  return secret;
}

TEST(CsiSpellingsTest, Base64BrokenIntoLinesWasShown) {
  const std::string secret = LongSecret();
  const std::string base64 = Base64Encode(secret);
  for (const size_t columns : {60U, 64U, 76U}) {
    for (const char* end :
         {"\n", "\r\n", "\\n", "\\r\\n", "\\\\n", "\\x0a", "%0A", "\n    ", "\n\t"}) {
      const std::string text = "login \"" + Joined(base64, columns, end) + "\" failed";
      EXPECT_EQ(LeftOf(secret, text), "login \"\" failed") << columns << " " << text;
    }
  }
  // Within something longer, as a part of it.
  const std::string basic = Joined(Base64Encode("u:" + secret + "@nas"), 76, "\n");
  EXPECT_LT(LeftOf(secret, basic).size(), 14u);
}

TEST(CsiSpellingsTest, HexadecimalDigitsWithSomethingBetweenThemWereShown) {
  const std::string secret = "T0p-Secret-\xff";
  for (const std::string& digits :
       {std::string("5430702d5365637265742dff"), std::string("5430702D5365637265742DFF")}) {
    for (const char* between : {":", " ", "-", ", ", ",", " 0x", ", 0x", ":\n    ", " \n"}) {
      const std::string text = "key " + Joined(digits, 2, between) + ".";
      EXPECT_EQ(LeftOf(secret, text), "key .") << text;
    }
    // As xxd has them, four digits at a time; and its lines of 60 digits.
    EXPECT_EQ(LeftOf(secret, "key " + Joined(digits, 4, " ") + "."), "key .");
    EXPECT_EQ(LeftOf(secret, "key " + Joined(digits, 10, "\n") + "."), "key .");
  }
}

TEST(CsiSpellingsTest, AListOfBytesWasShown) {
  // Go's %v of a []byte, Python's list(), Rust's {:?}, and JSON without blanks.
  for (const char* between : {" ", ", ", ",", " \n ", ",\n  "}) {
    std::string list;
    for (const char* byte : {"84", "114", "48", "117", "98", "45", "255"}) {
      list += (list.empty() ? "" : between) + std::string(byte);
    }
    EXPECT_EQ(LeftOf("Tr0ub-\xff", "key [" + list + "]"), "key []") << list;
  }
  EXPECT_EQ(LeftOf("Tr0ub-\xff", "key [84 114 48 117 98 45]"), "key [84 114 48 117 98 45]");
}

TEST(CsiSpellingsTest, AValueBrokenIntoLinesWasShown) {
  const std::string secret = LongSecret();
  for (const char* end : {"\n", "\r\n", "\\n", "\n  "}) {
    EXPECT_EQ(LeftOf(secret, "<" + Joined(secret, 40, end) + ">"), "<>") << end;
  }
  EXPECT_EQ(LeftOf("correct horse battery", "<correct horse\nbattery>"), "<>");
  EXPECT_EQ(LeftOf("correct horse battery", "<correct\r\n  horse\r\n  battery>"), "<>");
}

TEST(CsiSpellingsTest, TimesAndWordsAreNotTakenForASecretInPairs) {
  EXPECT_EQ(LeftOf("1234", "at 12:34 and 12-34"), "at 12:34 and 12-34");
  EXPECT_EQ(LeftOf("password", "the pass word, pass-word"), "the pass word, pass-word");
  EXPECT_EQ(LeftOf("beef-and-corn", "be:ef-and-corn"), "be:ef-and-corn");
  EXPECT_EQ(LeftOf("deadbeef", "de:ad:be:ef dead-beef"), " ");
}

TEST(CsiSpellingsTest, WhatIsNotTheTextStaysThere) {
  for (const char* other : {"hunter", "hunter3", "Hunter2", "hunter%32x", R"(\)", R"(\u)",
                            R"(\u00)", R"(\ud83d)", R"(\u{)", "%", "%2", "&", "&#", "&#x;",
                            "&#99999999;", R"(hunter\)", "hunter%", "hunter&#5"}) {
    const std::string left = LeftOf("hunter2", other);
    EXPECT_EQ(left, std::string(other) == "hunter%32x" ? "x" : other);
  }
}

TEST(CsiSpellingsTest, ATextOfNothingButEscapesIsReadToItsEnd) {
  const std::string backslashes(2'000, '\\');
  const std::string percents = [] {
    std::string text = "%";
    for (int i = 0; i < 1'000; ++i) text += "25";
    return text;
  }();
  EXPECT_NE(LeftOf("\\\\\\\\\\\\\\\\\\x", backslashes), "");
  EXPECT_NE(LeftOf("%%%%x", percents), "");
}

TEST(CsiSpellingsTest, WhatIsTakenOutIsNotLookedForAnyMore) {
  CsiSpellings spellings;
  EXPECT_TRUE(spellings.empty());
  spellings.Add("hunter2");
  spellings.Add("swordfish");
  spellings.Add("hunter2");
  spellings.Remove("hunter2");
  EXPECT_EQ(LeftOf(spellings, "hunter2 swordfish"), " ");
  spellings.Remove("hunter2");
  EXPECT_EQ(LeftOf(spellings, "hunter2 swordfish"), "hunter2 ");
  spellings.Remove("swordfish");
  EXPECT_TRUE(spellings.empty());
}

// ---- What a search may cost ----

std::string Repeated(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

// Nullopt: more than any search may take.
std::optional<size_t> StepsFor(const std::vector<std::string>& wanted, std::string_view text) {
  CsiSpellings spellings;
  spellings.AddAll(wanted);
  std::vector<bool> places(text.size());
  size_t steps = kCsiSearchSteps;
  if (spellings.Mark(text, false, places, steps)) return kCsiSearchSteps - steps;
  EXPECT_EQ(steps, 0u);
  EXPECT_EQ(std::find(places.begin(), places.end(), true), places.end());
  return std::nullopt;
}

TEST(CsiSpellingsTest, OneSecretOfManyQuotesDoesNotStopTheAgent) {
  for (const char* c : {"'", "\\"}) {
    EXPECT_EQ(StepsFor({Repeated(c, 3'000)}, Repeated(c, 7'000)), std::nullopt) << c;
    EXPECT_EQ(StepsFor({Repeated(c, 3'000)}, Repeated(c, 16'384)), std::nullopt) << c;
  }
  EXPECT_EQ(StepsFor({Repeated("''", 3'000) + "x"}, Repeated("'\\''", 4'000)), std::nullopt);
  EXPECT_EQ(StepsFor({std::string(8'000, 'a') + "b"}, std::string(16'384, 'a')), std::nullopt);
  // So few of them are searched, and found.
  EXPECT_EQ(LeftOf(Repeated("'", 20), "<" + Repeated("''", 20) + ">"), "<>");
}

TEST(CsiSpellingsTest, PercentSignsAreReadOnce) {
  for (const std::string& text :
       {Repeated("%", 16'384), Repeated("%25", 5'000), "%" + Repeated("25", 8'000)}) {
    (void)StepsFor({Repeated("%", 3'000)}, text);
  }
  const std::optional<size_t> steps =
      StepsFor({Repeated("%", 20)}, "login failed: " + Repeated("%25", 20) + " is wrong");
  ASSERT_TRUE(steps);
  EXPECT_LT(*steps, 2'000u);
}

TEST(CsiSpellingsTest, ManySecretsCostNoMoreThanOne) {
  std::vector<std::string> secrets;
  std::string text;
  // Secrets and text that have much in common, also as hexadecimal digits and in base64.
  for (int i = 0; i < 256; ++i) {
    secrets.push_back("password-" + std::to_string(i * 7'919 % 1'000) + "-of-pool");
  }
  while (text.size() < 16'384) text += "mount of pool password 70617373 cGFzc3dvcmQ= failed; ";
  text.resize(16'384);
  const std::optional<size_t> one = StepsFor({secrets.front()}, text);
  const std::optional<size_t> all = StepsFor(secrets, text);
  ASSERT_TRUE(one && all);
  EXPECT_LT(*one, 4 * text.size());
  EXPECT_LT(*all, 4 * text.size());
}

TEST(CsiSpellingsTest, WhatJsonMakesTooLongIsNotEncodedOnceMore) {
  const std::string keystore(16 * 1024, '<');
  size_t bytes = 0;
  for (const std::string& encoding : CsiEncodingsOf(keystore)) bytes += encoding.size();
  EXPECT_LT(bytes, 40 * keystore.size());
}

TEST(CsiSpellingsTest, WhatMayStandBetweenBytesMakesNoSearchLonger) {
  const std::string secret = LongSecret();
  for (const char* filling : {"\n", " ", ":", "0x", "\n ", "41 ", "41:", "QUFB\n", "65, "}) {
    const std::string text = Repeated(filling, 16'384 / std::string_view(filling).size());
    const std::optional<size_t> steps = StepsFor({secret}, text);
    ASSERT_TRUE(steps) << filling;
    EXPECT_LT(*steps, 8 * text.size()) << filling;
  }
}

TEST(CsiSpellingsTest, SeveralTextsShareTheirSteps) {
  CsiSpellings spellings;
  spellings.Add("hunter2");
  std::vector<bool> places(7);
  size_t steps = 8;
  EXPECT_TRUE(spellings.Mark("hunter2", false, places, steps));
  EXPECT_EQ(steps, 1u);
  EXPECT_FALSE(spellings.Mark("hunter2", false, places, steps));
  EXPECT_EQ(steps, 0u);
}

// ---- CsiSecretMemory ----

std::string LeftOf(const CsiSecretMemory& memory, std::string_view text) {
  std::vector<bool> places(text.size());
  size_t steps = kCsiSearchSteps;
  EXPECT_TRUE(memory.Mark(text, false, places, steps));
  return {text.begin(), std::find(places.begin(), places.end(), true) == places.end()
                            ? text.end()
                            : text.begin()};
}

TEST(CsiSecretMemoryTest, TheValuesThatWereSentLastAreKept) {
  CsiSecretMemory memory;
  EXPECT_TRUE(memory.empty());
  memory.Remember({"secret-first", "secret-again"});
  for (int i = 0; i < 254; ++i) memory.Remember({"secret-" + std::to_string(i) + "-x"});
  EXPECT_EQ(LeftOf(memory, "secret-first"), "");
  memory.Remember({"secret-again"});
  memory.Remember({"secret-new"});
  EXPECT_EQ(LeftOf(memory, "secret-first"), "secret-first");
  for (const char* kept : {"secret-again", "secret-new", "secret-0-x", "secret-253-x"}) {
    EXPECT_EQ(LeftOf(memory, kept), "") << kept;
  }
}

std::string Large(char first) { return first + std::string(16'379, 'x'); }

TEST(CsiSecretMemoryTest, LargeValuesPushOutOthersAndTooLargeOnesDoNot) {
  CsiSecretMemory memory;
  memory.Remember({"secret-first"});
  memory.Remember({std::string(20'000, 'k')});
  EXPECT_EQ(LeftOf(memory, "secret-first"), "");
  EXPECT_NE(LeftOf(memory, std::string(20'000, 'k')), "");
  for (const char c : {'a', 'b', 'c', 'e', 'd'}) memory.Remember({Large(c)});
  EXPECT_EQ(LeftOf(memory, "secret-first"), "secret-first");
  EXPECT_EQ(LeftOf(memory, Large('d')), "");
}

TEST(CsiSecretMemoryTest, WhatMayHaveBeenSentEarlierPushesOutNothingAndIsForgottenFirst) {
  CsiSecretMemory memory;
  for (int i = 0; i < 255; ++i) memory.Remember({"secret-" + std::to_string(i) + "-x"});
  memory.RememberEarlier({"secret-0-x", std::string(20'000, 'k'), "earlier-1", "earlier-2"});
  EXPECT_EQ(LeftOf(memory, "earlier-1"), "");
  EXPECT_EQ(LeftOf(memory, "earlier-2"), "earlier-2") << "there was no room";
  EXPECT_EQ(LeftOf(memory, "secret-0-x"), "");
  memory.Remember({"secret-new"});
  EXPECT_EQ(LeftOf(memory, "earlier-1"), "earlier-1");
  EXPECT_EQ(LeftOf(memory, "secret-0-x"), "");
}

}  // namespace
}  // namespace volumed
