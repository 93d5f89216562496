#include "volume/driver_domain.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

TEST(DriverDomainTest, ItIsToldApartAndNamed) {
  const std::string domain = DriverDomain("disks.example.com");
  EXPECT_EQ(domain, "csi:disks.example.com");
  EXPECT_TRUE(IsDriverDomain(domain));
  EXPECT_EQ(DriverDomainName(domain), "CSI driver disks.example.com");
  for (const char* other : {"", "nfs:nas", "/var/lib/csi:x", "flexvolume/x", "found:csi:x"}) {
    EXPECT_FALSE(IsDriverDomain(other)) << other;
    EXPECT_EQ(DriverDomainName(other), "") << other;
  }
}

TEST(DriverDomainTest, EffectsHangWithThePathInPlaceOfADriverAndElseWithTheDomain) {
  EXPECT_EQ(EffectDomain("csi:disks.example.com", "/mnt/a"), "/mnt/a");
  EXPECT_EQ(EffectDomain("csi:disks.example.com", ""), "");
  EXPECT_EQ(EffectDomain("nfs:nas", "/mnt/a"), "nfs:nas");
  EXPECT_EQ(EffectDomain("", "/mnt/a"), "");
}

}  // namespace
}  // namespace volumed
