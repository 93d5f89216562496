#include "base/quantity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <string>

namespace volumed {
namespace {

using Format = Quantity::Format;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

Quantity Q(std::string_view text) {
  Result<Quantity> parsed = Quantity::Parse(text);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.error().ToString();
  return parsed.ok() ? *parsed : Quantity();
}

struct ParseCase {
  std::string text;
  int64_t value;
  int64_t milli;
  std::string canonical;
};

void PrintTo(const ParseCase& c, std::ostream* out) { *out << c.text; }

class QuantityParseTest : public testing::TestWithParam<ParseCase> {};

TEST_P(QuantityParseTest, ValueMilliValueAndCanonicalForm) {
  const ParseCase& c = GetParam();
  const Quantity quantity = Q(c.text);
  EXPECT_EQ(quantity.Value(), c.value);
  ASSERT_TRUE(quantity.MilliValue().ok());
  EXPECT_EQ(*quantity.MilliValue(), c.milli);
  EXPECT_EQ(quantity.String(), c.canonical);
  EXPECT_EQ(Q(quantity.String()), quantity) << "the canonical form is the same number";
  EXPECT_EQ(Q(quantity.String()).String(), quantity.String()) << "and is its own canonical form";
}

INSTANTIATE_TEST_SUITE_P(
    EverySuffix, QuantityParseTest,
    testing::Values(ParseCase{"1n", 1, 1, "1n"}, ParseCase{"1u", 1, 1, "1u"},
                    ParseCase{"1m", 1, 1, "1m"}, ParseCase{"1", 1, 1000, "1"},
                    ParseCase{"1k", 1000, 1000000, "1k"},
                    ParseCase{"1M", 1000000, 1000000000, "1M"},
                    ParseCase{"1G", 1000000000, 1000000000000, "1G"},
                    ParseCase{"1T", 1000000000000, 1000000000000000, "1T"},
                    ParseCase{"1P", 1000000000000000, 1000000000000000000, "1P"},
                    ParseCase{"1Ki", 1024, 1024000, "1Ki"},
                    ParseCase{"1Mi", 1048576, 1048576000, "1Mi"},
                    ParseCase{"1Gi", 1073741824, 1073741824000, "1Gi"},
                    ParseCase{"1Ti", 1099511627776, 1099511627776000, "1Ti"},
                    ParseCase{"1Pi", 1125899906842624, 1125899906842624000, "1Pi"},
                    ParseCase{"1e3", 1000, 1000000, "1e3"}, ParseCase{"1E3", 1000, 1000000, "1e3"},
                    ParseCase{"1e+3", 1000, 1000000, "1e3"}, ParseCase{"1e-3", 1, 1, "1e-3"},
                    ParseCase{"1e0", 1, 1000, "1"}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, QuantityParseTest,
    testing::Values(ParseCase{"0", 0, 0, "0"}, ParseCase{"0Ki", 0, 0, "0"},
                    ParseCase{"-0", 0, 0, "0"}, ParseCase{"0e999999999999999999999", 0, 0, "0"},
                    ParseCase{"000", 0, 0, "0"}, ParseCase{"007", 7, 7000, "7"},
                    ParseCase{"+5", 5, 5000, "5"}, ParseCase{"-5", -5, -5000, "-5"},
                    ParseCase{"1.", 1, 1000, "1"}, ParseCase{".5", 1, 500, "500m"},
                    ParseCase{"-.5", -1, -500, "-500m"}, ParseCase{"1.5", 2, 1500, "1500m"},
                    ParseCase{"-1.5", -2, -1500, "-1500m"}, ParseCase{"1.50000", 2, 1500, "1500m"},
                    ParseCase{"100m", 1, 100, "100m"}, ParseCase{"1000m", 1, 1000, "1"},
                    ParseCase{"1100m", 2, 1100, "1100m"}, ParseCase{"0.1", 1, 100, "100m"},
                    ParseCase{"0.0001", 1, 1, "100u"}, ParseCase{"1.001k", 1001, 1001000, "1001"},
                    ParseCase{"1500", 1500, 1500000, "1500"},
                    ParseCase{"12000", 12000, 12000000, "12k"},
                    ParseCase{"1e2", 100, 100000, "100"},
                    ParseCase{"12e4", 120000, 120000000, "120e3"}, ParseCase{"0.5e1", 5, 5000, "5"},
                    ParseCase{"5e-1", 1, 500, "500e-3"}));

INSTANTIATE_TEST_SUITE_P(Binary, QuantityParseTest,
                         testing::Values(ParseCase{"1.5Ki", 1536, 1536000, "1536"},
                                         ParseCase{"0.5Mi", 524288, 524288000, "512Ki"},
                                         ParseCase{"1024Ki", 1048576, 1048576000, "1Mi"},
                                         ParseCase{"1023Ki", 1047552, 1047552000, "1023Ki"},
                                         ParseCase{"0.5Ki", 512, 512000, "512"},
                                         ParseCase{"0.1Ki", 103, 102400, "102400m"},
                                         ParseCase{"1.1Ki", 1127, 1126400, "1126400m"},
                                         ParseCase{"-2Gi", -2147483648, -2147483648000, "-2Gi"},
                                         ParseCase{"1.5Gi", 1610612736, 1610612736000, "1536Mi"}));

INSTANTIATE_TEST_SUITE_P(
    FinerThanABillionth, QuantityParseTest,
    testing::Values(ParseCase{"0.1n", 1, 1, "1n"}, ParseCase{"1.1n", 1, 1, "2n"},
                    ParseCase{"-0.1n", -1, -1, "-1n"}, ParseCase{"0.0000000001", 1, 1, "1n"},
                    ParseCase{"1.0000000000000000000000000001", 2, 1001, "1000000001n"},
                    ParseCase{"1e-500", 1, 1, "1e-9"},
                    ParseCase{"5e-99999999999999999999", 1, 1, "1e-9"}));

TEST(QuantityTest, LargestValues) {
  EXPECT_EQ(Q("9223372036854775807").Value(), kMax);
  EXPECT_EQ(Q("-9223372036854775807").Value(), -kMax);
  EXPECT_EQ(Q("7Ei").Value(), int64_t{7} << 60);
  EXPECT_EQ(Q("7Ei").String(), "7Ei");
  EXPECT_EQ(Q("9E").Value(), 9000000000000000000);
  EXPECT_EQ(Q("9223372036854775806.999999999").Value(), kMax);
  EXPECT_EQ(Q("9223372036854775807").String(), "9223372036854775807");
}

class QuantityOutOfRangeTest : public testing::TestWithParam<const char*> {};

TEST_P(QuantityOutOfRangeTest, IsRefused) {
  const Result<Quantity> parsed = Quantity::Parse(GetParam());
  ASSERT_FALSE(parsed.ok()) << parsed->String();
  EXPECT_EQ(parsed.error().code(), Code::kOutOfRange);
  EXPECT_FALSE(parsed.error().maybe_applied());
  EXPECT_NE(parsed.error().message().find("9223372036854775807"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(TooLarge, QuantityOutOfRangeTest,
                         testing::Values("9223372036854775808", "-9223372036854775808", "8Ei",
                                         "10E", "9223372036854775807.0000000001", "1e19",
                                         "1e999999999999", "-1e30", "99999999Ti",
                                         "100000000000000000000000000000000000000000000",
                                         "340282366920938463463374607431768211456n"));

class QuantityMalformedTest : public testing::TestWithParam<const char*> {};

TEST_P(QuantityMalformedTest, IsRefused) {
  const Result<Quantity> parsed = Quantity::Parse(GetParam());
  ASSERT_FALSE(parsed.ok()) << parsed->String();
  EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(parsed.error().message().rfind("quantity \"", 0), 0u) << parsed.error().message();
}

INSTANTIATE_TEST_SUITE_P(Text, QuantityMalformedTest,
                         testing::Values("", " ", "+", "-", ".", "+.", "-.m", "m", "Ki", "e3",
                                         ".e1", " 1", "1 ", "1 Ki", "1\n", "1.1.1", "1..", "--1",
                                         "+-1", "-+1", "1-", "1+1", "1,5", "0x10", "1i", ".5i",
                                         "1mi", "1ki", "1K", "1KI", "1Kib", "1KB", "1kk", "1Ki1",
                                         "1KiKi", "1g", "1gi", "1t", "1Ni", "1ni", "1U", "1N", "1e",
                                         "1E+", "1e-", "1e1.5", "1e1Ki", "1ee1", "1e1e1", "1e--1",
                                         "1e+-1", "1E1i", "1.5.Gi", "inf", "nan", "1_000",
                                         "\xd9\xa1", "1\xc2\xb5"));

TEST(QuantityTest, NulIsNotTheEndOfTheText) {
  EXPECT_FALSE(Quantity::Parse(std::string_view("1\0", 2)).ok());
  EXPECT_FALSE(Quantity::Parse(std::string_view("1\0Ki", 4)).ok());
}

TEST(QuantityTest, ErrorsShowNoControlCharactersAndNoEndlessText) {
  EXPECT_EQ(Quantity::Parse("1\n2\x1b").error().message().substr(0, 16), "quantity \"1?2?\":");
  EXPECT_LT(Quantity::Parse(std::string(100000, 'x')).error().message().size(), 200u);
}

TEST(QuantityTest, LongTextsAreExact) {
  EXPECT_EQ(Q(std::string(50000, '0') + "3").Value(), 3);
  EXPECT_EQ(Q("3." + std::string(50000, '0')).String(), "3");
  EXPECT_EQ(Q("3." + std::string(50000, '0') + "1").String(), "3000000001n");
  // A tenth of a thousandth of ... times 1024^6 is still exact where it ends.
  EXPECT_EQ(Q("0.00000000000000000086736173798840354720596224069595336914062500Ei").Value(), 1);
}

TEST(QuantityTest, ComparesNumbersNotSpellings) {
  EXPECT_EQ(Q("1024"), Q("1Ki"));
  EXPECT_EQ(Q("1000m"), Q("1"));
  EXPECT_EQ(Q("1e3"), Q("1k"));
  EXPECT_EQ(Q("0.5Gi"), Q("512Mi"));
  EXPECT_LT(Q("1k"), Q("1Ki"));
  EXPECT_LT(Q("-1"), Q("0"));
  EXPECT_LT(Q("-2"), Q("-1"));
  EXPECT_GT(Q("1n"), Q("0"));
  EXPECT_LT(Q("999999999n"), Q("1"));
  EXPECT_GT(Q("7Ei"), Q("7E"));
}

TEST(QuantityTest, SignsAndZero) {
  EXPECT_EQ(Quantity().String(), "0");
  EXPECT_TRUE(Quantity().IsZero());
  EXPECT_EQ(Q("-1n").Sign(), -1);
  EXPECT_EQ(Q("0").Sign(), 0);
  EXPECT_EQ(Q("1n").Sign(), 1);
}

TEST(QuantityTest, MilliValueThatDoesNotFitIsAnError) {
  EXPECT_EQ(*Q("9223372036854775807m").MilliValue(), kMax);
  EXPECT_EQ(Q("9223372036854775808m").MilliValue().error().code(), Code::kOutOfRange);
  EXPECT_EQ(Q("1E").MilliValue().error().code(), Code::kOutOfRange);
  EXPECT_EQ(Q("-1E").MilliValue().error().code(), Code::kOutOfRange);
}

TEST(QuantityTest, FromNumbers) {
  EXPECT_EQ(Quantity::FromBytes(64 << 20).String(), "64Mi");
  EXPECT_EQ(Quantity::FromBytes(1000).String(), "1k");
  EXPECT_EQ(Quantity::FromInteger(2000000).String(), "2M");
  EXPECT_EQ(Quantity::FromInteger(2000, Format::kDecimalExponent).String(), "2e3");
  EXPECT_EQ(Quantity::FromMilli(250).String(), "250m");
  EXPECT_EQ(Quantity::FromMilli(1024000).String(), "1024") << "no power of two, as in Kubernetes";
  EXPECT_EQ(Quantity::FromInteger(kMax).Value(), kMax);
  EXPECT_EQ(Quantity::FromInteger(std::numeric_limits<int64_t>::min()).Value(), -kMax);
}

TEST(QuantityTest, SumsKeepTheFirstFormatAndTheRange) {
  EXPECT_EQ(Q("1Gi").Add(Q("1024M"))->Value(), 1073741824 + 1024000000);
  EXPECT_EQ(Q("512Mi").Add(Q("512Mi"))->String(), "1Gi");
  EXPECT_EQ(Q("1").Subtract(Q("1m"))->String(), "999m");
  EXPECT_EQ(Q("1").Subtract(Q("2Ki"))->Value(), -2047);
  EXPECT_EQ(Q("7Ei").Add(Q("7Ei")).error().code(), Code::kOutOfRange);
  EXPECT_EQ(Q("-7Ei").Subtract(Q("7Ei")).error().code(), Code::kOutOfRange);
}

TEST(QuantityTest, EveryIntegerSurvivesEveryFormat) {
  std::mt19937_64 random(4711);
  for (int i = 0; i < 5000; ++i) {
    const int64_t value =
        static_cast<int64_t>(random() >> (1 + random() % 60)) * (random() % 2 == 0 ? 1 : -1);
    for (const Format format : {Format::kDecimalSi, Format::kBinarySi, Format::kDecimalExponent}) {
      const Quantity quantity = Quantity::FromInteger(value, format);
      EXPECT_EQ(Q(quantity.String()).Value(), value) << quantity.String();
    }
  }
}

TEST(QuantityTest, RandomTextNeverBreaksTheParser) {
  constexpr std::string_view kAlphabet = "0123456789.+-eEinumkKMGTP ";
  std::mt19937_64 random(815);
  int accepted = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (size_t length = random() % 8; length > 0; --length) {
      text += kAlphabet[random() % kAlphabet.size()];
    }
    const Result<Quantity> parsed = Quantity::Parse(text);
    if (!parsed.ok()) continue;
    ++accepted;
    EXPECT_EQ(Q(parsed->String()), *parsed) << text;
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace volumed
