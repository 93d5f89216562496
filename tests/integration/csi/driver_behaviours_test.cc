// The table of what CSI drivers do wrong is whole: each row expects a state and a text that tells,
// so that none passes because nothing is looked for.
#include "integration/csi/driver_behaviours.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace volumed {
namespace {

TEST(DriverBehavioursTest, EachRowHasAStateAndATextThatTells) {
  std::set<std::string> numbers;
  int lies = 0;
  for (const CsiBehaviour& row : AllCsiBehaviours()) {
    EXPECT_EQ(WhatIsMissing(row), "") << row.number << ": " << row.what;
    EXPECT_TRUE(numbers.insert(row.number).second) << row.number << " is there twice";
    if (row.is_lie) ++lies;
  }
  EXPECT_GE(numbers.size(), 40u);
  EXPECT_GE(lies, 12);
}

TEST(DriverBehavioursTest, ARowWithoutAStateIsRefused) {
  const CsiBehaviour row{.number = "0", .what = "stage: Internal", .says = "Internal: why"};
  EXPECT_EQ(WhatIsMissing(row), "no state is expected");
}

TEST(DriverBehavioursTest, ARowWithoutATextIsRefused) {
  const CsiBehaviour row{.number = "0", .what = "unstage: Internal", .state = "gone"};
  EXPECT_EQ(WhatIsMissing(row), "no text is expected");
}

TEST(DriverBehavioursTest, ARowWhoseTextIsAnRpcsNameIsRefused) {
  CsiBehaviour row{.number = "0", .what = "stage: Internal", .state = "gone"};
  for (const char* text : {"NodeStageVolume", "NodeStageVolume: ", ": CreateVolume", ": "}) {
    row.says = text;
    EXPECT_EQ(WhatIsMissing(row), "its text is no more than an RPC's name") << text;
  }
  row.says = "NodeStageVolume: Internal";
  EXPECT_EQ(WhatIsMissing(row), "");
  row.says = "";
  row.kept = "ControllerExpandVolume";
  EXPECT_EQ(WhatIsMissing(row), "what is kept of it is no more than an RPC's name");
}

}  // namespace
}  // namespace volumed
