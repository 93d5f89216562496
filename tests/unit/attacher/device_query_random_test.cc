// Properties of RefuseRecord and RefuseFacts over random devices and queries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <string>

#include "attacher/device_query.h"

namespace volumed {
namespace {

constexpr int kQuestions = 50'000;

struct DeviceQuestion {
  DeviceQuery query;
  CatalogDevice record;
  DeviceFacts facts;
  std::string link;
  DeviceEventSource source = DeviceEventSource::kUdev;
};

// Few values of each kind, so that they often agree.
class RandomDevices {
 public:
  explicit RandomDevices(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t limit) { return random_() % limit; }
  bool OneIn(uint64_t times) { return Below(times) == 0; }
  std::string Wwid() { return Hex(OneIn(2) ? 16 : 32, 2); }
  // The same WWID as the kernel, udevd, scsi_id or a person writes it.
  std::string Spelled(const std::string& wwid) {
    static constexpr const char* kPrefixes[] = {"", "naa.", "0x", "3", "wwn-0x"};
    std::string text = kPrefixes[Below(std::size(kPrefixes))] + wwid;
    if (OneIn(2)) {
      std::transform(text.begin(), text.end(), text.begin(),
                     [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    }
    return OneIn(3) ? " " + text + "\n" : text;
  }

  DeviceQuestion Next() {
    DeviceQuestion question;
    CatalogDevice& record = question.record;
    record.number = Number();
    record.name = Name();
    record.node = "/dev/" + record.name;
    record.sysfs_path = "/sys/devices/" + record.name;
    record.disk_sequence = Below(3);
    record.described = !OneIn(3);
    record.usable = !OneIn(5);
    if (record.described) {
      record.links = {Link()};
      record.serials = {Serial()};
      record.wwids = {Spelled(Hex(16, 2))};
    }
    question.facts.identity.device_major =
        OneIn(5) ? Number().device_major : record.number.device_major;
    question.facts.identity.device_minor =
        OneIn(5) ? Number().device_minor : record.number.device_minor;
    question.facts.identity.disk_sequence = OneIn(3) ? Below(3) : record.disk_sequence;
    question.facts.identity.size_bytes = static_cast<int64_t>(1 + Below(2));
    question.facts.identity.stable_id = "wwid:" + std::to_string(Below(2));
    if (!OneIn(3)) question.facts.serial = Serial();
    if (!OneIn(3)) question.facts.wwid = "naa." + Hex(16, 2);
    question.query = Query();
    question.link = OneIn(2) ? "" : Link();
    question.source = OneIn(2) ? DeviceEventSource::kUdev : DeviceEventSource::kKernel;
    return question;
  }

 private:
  DeviceNumber Number() { return {8, static_cast<uint32_t>(Below(2))}; }
  std::string Name() { return OneIn(2) ? "sda" : "sdb"; }
  std::string Link() { return OneIn(4) ? "/dev/mapper/x" : "/dev/disk/by-id/" + Serial(); }
  std::string Serial() { return "serial-" + std::to_string(Below(2)); }
  // One of `kinds` texts of that many digits.
  std::string Hex(size_t digits, uint64_t kinds) {
    return std::string(digits, static_cast<char>('a' + Below(kinds)));
  }
  DeviceQuery Query() {
    DeviceQuery query;
    if (OneIn(2)) query.number = Number();
    if (OneIn(4)) query.sysfs_path = (OneIn(2) ? "/sys/block/" : "/sys/devices/") + Name();
    if (OneIn(2)) query.serial = Serial();
    if (OneIn(2)) query.wwid = Spelled(Hex(16, 2));
    if (OneIn(4)) query.size_bytes = static_cast<int64_t>(1 + Below(2));
    if (OneIn(4)) query.disk_sequence = 1 + Below(2);
    if (OneIn(4)) query.stable_id = "wwid:" + std::to_string(Below(2));
    return query;
  }

  std::mt19937_64 random_;
};

bool IsOpenedOneTaken(const DeviceQuestion& question) {
  return RefuseFacts(question.query, question.record, question.facts).empty();
}

bool IsRecordTaken(const DeviceQuestion& question) {
  return RefuseRecord(question.query, question.record, question.link, question.source).empty();
}

TEST(DeviceQueryRandom, WhatIsTakenIsTheDeviceOfTheRecordAndHasAllThatIsAsked) {
  RandomDevices devices(1);
  int taken = 0;
  for (int i = 0; i < kQuestions; ++i) {
    const DeviceQuestion question = devices.Next();
    if (!IsOpenedOneTaken(question)) continue;
    ++taken;
    const auto& [query, record, facts, link, source] = question;
    const DeviceIdentity& identity = facts.identity;
    ASSERT_EQ(identity.device_major, record.number.device_major) << i;
    ASSERT_EQ(identity.device_minor, record.number.device_minor) << i;
    const bool is_of_record = identity.disk_sequence == record.disk_sequence;
    ASSERT_TRUE(is_of_record || record.disk_sequence == 0 ||
                query.disk_sequence == identity.disk_sequence)
        << i << ": another device came in its place";
    ASSERT_TRUE(query.size_bytes == 0 || query.size_bytes == identity.size_bytes) << i;
    ASSERT_TRUE(query.stable_id.empty() || query.stable_id == identity.stable_id) << i;
    if (query.serial.empty() || query.serial == facts.serial) continue;
    ASSERT_TRUE(is_of_record || record.disk_sequence == 0)
        << i << ": udevd's word about another device counts";
    ASSERT_EQ(record.serials, std::vector<std::string>{query.serial}) << i;
  }
  EXPECT_GT(taken, kQuestions / 100) << "the questions say something";
}

// Who asks for less gets at least what he would have got.
TEST(DeviceQueryRandom, NothingIsRefusedBecauseLessIsAsked) {
  RandomDevices devices(2);
  for (int i = 0; i < kQuestions; ++i) {
    DeviceQuestion question = devices.Next();
    const bool was_taken = IsOpenedOneTaken(question);
    const bool was_usable = IsRecordTaken(question);
    switch (devices.Below(5)) {
      case 0:
        question.query.number.reset();
        break;
      case 1:
        question.query.sysfs_path.clear();
        break;
      case 2:
        question.query.size_bytes = 0;
        break;
      case 3:
        question.query.stable_id.clear();
        break;
      case 4:
        question.query.serial.clear();
        break;
    }
    ASSERT_TRUE(!was_taken || IsOpenedOneTaken(question)) << i;
    // A name of its own is also what proves a link where there is no udevd.
    const bool proves = question.source == DeviceEventSource::kKernel && !question.link.empty();
    ASSERT_TRUE(!was_usable || proves || IsRecordTaken(question)) << i;
  }
}

TEST(DeviceQueryRandom, AWwidIsTheSameHoweverItIsSpelled) {
  RandomDevices devices(3);
  for (int i = 0; i < kQuestions; ++i) {
    const std::string wwid = devices.Wwid();
    const std::string spelled = devices.Spelled(wwid);
    ASSERT_EQ(NormalWwid(spelled), wwid) << spelled;
    ASSERT_EQ(NormalWwid(NormalWwid(spelled)), wwid) << spelled;
  }
}

TEST(DeviceQueryRandom, ARecordThatUdevdHasNotFinishedOrKeepsFromUseIsNeverTaken) {
  RandomDevices devices(4);
  for (int i = 0; i < kQuestions; ++i) {
    const DeviceQuestion question = devices.Next();
    if (!IsRecordTaken(question)) continue;
    ASSERT_TRUE(question.record.usable) << i;
    ASSERT_TRUE(question.record.described || question.source == DeviceEventSource::kKernel) << i;
    const bool is_name = question.link.starts_with("/dev/disk/") && question.record.described;
    ASSERT_TRUE(!is_name || question.record.links.front() == question.link) << i << ": stale";
  }
}

}  // namespace
}  // namespace volumed
