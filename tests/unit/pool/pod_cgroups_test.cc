#include "pool/pod_cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes/must.h"

namespace volumed {
namespace {

using ::testing::Contains;
using ::testing::SizeIs;

TEST(PodCgroups, AreThoseOfBothDriversOfAKubelet) {
  const std::vector<std::string> names = Must(PodCgroups("1f-2a"));
  EXPECT_THAT(names, SizeIs(12));
  for (const char* name :
       {"kubepods/pod1f-2a", "kubepods/burstable/pod1f-2a", "kubepods/besteffort/pod1f-2a",
        "kubepods.slice/kubepods-pod1f_2a.slice",
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f_2a.slice",
        "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1f_2a.slice",
        "kubelet/kubepods/burstable/pod1f-2a",
        "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
        "kubelet-kubepods-besteffort-pod1f_2a.slice"}) {
    EXPECT_THAT(names, Contains(name));
  }
}

TEST(PodCgroups, OfATextThatIsNoUidAreNone) {
  for (const char* text : {"", "a/b", "..\n", "a b", "csi:0123"}) {
    const auto names = PodCgroups(text);
    ASSERT_FALSE(names.ok()) << text;
    EXPECT_EQ(names.error().code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(PodCgroups(std::string(129, 'a')).ok());
  EXPECT_FALSE(PodCgroups(std::string("a\0b", 3)).ok());
}

}  // namespace
}  // namespace volumed
