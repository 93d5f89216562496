// The model that random clients are held against sees what it has to see: a content that is no
// moment of what was written, and what is known of a thing while calls are in doubt.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "integration/csi/random/random_content.h"
#include "integration/csi/random/random_facts.h"

namespace volumed::random_clients {
namespace {

constexpr uint64_t kTag = 7;

// Writes to a volume and its model, one unit of time after the other.
struct Written {
  std::shared_ptr<WriteHistory> history = std::make_shared<WriteHistory>(kTag);
  Blocks blocks = EmptyBlocks();
  uint64_t now = 0;

  void Write(int times) {
    for (int i = 0; i < times; ++i) {
      const uint64_t number = history->Issue(++now);
      blocks[PlaceOfWrite(number)] = BlockOfWrite(history->tag(), number);
      history->Acknowledge(number, ++now);
    }
  }
};

bool HasProblem(const Prefix& prefix) { return !prefix.problem.empty(); }

TEST(RandomContentTest, AVolumeIsAsItWasAfterItsLastWriteAlsoWhereBlocksWereWrittenTwice) {
  Written volume;
  EXPECT_EQ(PrefixIn(*volume.history, volume.blocks).last, 0u);
  for (const int times : {1, 4, 11, 1, 30}) {
    volume.Write(times);
    const Prefix prefix = PrefixIn(*volume.history, volume.blocks);
    EXPECT_EQ(prefix.problem, "");
    EXPECT_EQ(prefix.last, volume.history->acknowledged());
  }
}

TEST(RandomContentTest, AMixtureOfTwoMomentsIsSeen) {
  Written volume;
  volume.Write(40);
  const Blocks before = volume.blocks;
  volume.Write(5);
  for (const uint64_t number : {41, 42, 43, 44}) {
    Blocks mixture = volume.blocks;
    mixture[PlaceOfWrite(number)] = before[PlaceOfWrite(number)];
    EXPECT_TRUE(HasProblem(PrefixIn(*volume.history, mixture))) << number;
  }
  Blocks without_last = volume.blocks;
  without_last[PlaceOfWrite(45)] = before[PlaceOfWrite(45)];
  EXPECT_EQ(PrefixIn(*volume.history, without_last).problem, "") << "that is the moment before it";
  Blocks emptied = volume.blocks;
  emptied[3] = EmptyBlocks()[3];
  EXPECT_TRUE(HasProblem(PrefixIn(*volume.history, emptied)));
}

TEST(RandomContentTest, ATornBlockAndAnotherVolumesBlockAreSeen) {
  Written volume;
  volume.Write(20);
  Blocks torn = volume.blocks;
  torn[0].replace(2048, 2048, BlockOfWrite(kTag, 1), 2048, 2048);
  EXPECT_TRUE(HasProblem(PrefixIn(*volume.history, torn)));
  Blocks others = volume.blocks;
  others[0] = BlockOfWrite(kTag + 1, 17);
  EXPECT_TRUE(HasProblem(PrefixIn(*volume.history, others)));
}

TEST(RandomContentTest, ACutWithoutAWriteThatWasAcknowledgedBeforeItOrWithALaterOneIsSeen) {
  Written volume;
  volume.Write(20);
  EXPECT_EQ(PrefixBetween(*volume.history, volume.blocks, 18, 20).problem, "");
  EXPECT_TRUE(HasProblem(PrefixBetween(*volume.history, volume.blocks, 21, 25)));
  EXPECT_TRUE(HasProblem(PrefixBetween(*volume.history, volume.blocks, 15, 19)));
}

TEST(RandomContentTest, TwoVolumesOfOneCutHaveOneMoment) {
  Written volume;
  volume.Write(20);
  CutContent cut(volume.history, 20, 22);
  EXPECT_EQ(cut.Learn(volume.blocks).problem, "");
  EXPECT_EQ(cut.Learn(volume.blocks).problem, "");
  volume.Write(1);
  EXPECT_TRUE(HasProblem(cut.Learn(volume.blocks)));
}

TEST(RandomContentTest, ARestoredVolumeGoesOnFromWhatItsSourceHad) {
  Written source;
  source.Write(20);
  Written restored;
  restored.history = WriteHistory::OfContent(kTag + 1);
  EXPECT_FALSE(restored.history->knows_base());
  restored.blocks = source.blocks;
  restored.history->Continue(source.history, 20);
  EXPECT_EQ(restored.history->acknowledged(), 20u);
  restored.Write(3);
  EXPECT_EQ(PrefixIn(*restored.history, restored.blocks).problem, "");
  EXPECT_EQ(PrefixIn(*restored.history, restored.blocks).last, 23u);
  source.Write(3);
  EXPECT_TRUE(HasProblem(PrefixIn(*restored.history, source.blocks))) << "they share nothing more";
}

TEST(RandomContentTest, AWriteThatFailedMayBeThereOrNotAndIsIssuedAgain) {
  Written volume;
  volume.Write(2);
  EXPECT_EQ(volume.history->Issue(10), 3u);
  EXPECT_EQ(volume.history->Issue(11), 3u);
  EXPECT_EQ(volume.history->IssuedAt(3), 10u);
  EXPECT_EQ(volume.history->issued(), 3u);
  EXPECT_EQ(volume.history->acknowledged(), 2u);
}

TEST(RandomContentTest, AGroupWithAWriteThatBeganAfterTheEndOfOneThatIsMissingIsSeen) {
  Written first;
  Written second;
  second.history = std::make_shared<WriteHistory>(kTag + 1);
  first.Write(1);
  const auto first_cut = std::make_shared<CutContent>(first.history, 0, 9);
  EXPECT_EQ(first_cut->Learn(first.blocks).problem, "");
  first.Write(1);
  second.now = first.now;
  const auto before = std::make_shared<CutContent>(second.history, 0, 9);
  EXPECT_EQ(before->Learn(second.blocks).problem, "");
  second.Write(1);
  const auto after = std::make_shared<CutContent>(second.history, 0, 9);
  EXPECT_EQ(WhyNotOneMoment({first_cut, after}), "") << "it is not known yet what one has";
  EXPECT_EQ(after->Learn(second.blocks).problem, "");
  EXPECT_EQ(WhyNotOneMoment({first_cut, before}), "");
  EXPECT_NE(WhyNotOneMoment({first_cut, after}), "");
}

TEST(RandomFactsTest, WhatADoneCallSaysIsKnownUntilTheOtherOneBegins) {
  CsiFact fact(CsiState::kGone);
  fact.Begin(1, CsiState::kThere, 1);
  EXPECT_EQ(fact.known(), CsiState::kUnknown);
  fact.End(1, CsiEnd::kDone, 2, 1);
  EXPECT_EQ(fact.known(), CsiState::kThere);
  const uint64_t version = fact.version();
  fact.Begin(3, CsiState::kGone, 1);
  EXPECT_EQ(fact.known(), CsiState::kUnknown);
  fact.End(3, CsiEnd::kRefused, 4, 1);
  EXPECT_EQ(fact.known(), CsiState::kThere) << "a refused call has done nothing";
  EXPECT_NE(fact.version(), version) << "but nobody could know while it went on";
}

TEST(RandomFactsTest, OfTwoContraryCallsThatWentOnTogetherNobodyKnowsWhichWasLast) {
  CsiFact fact(CsiState::kGone);
  fact.Begin(1, CsiState::kThere, 1);
  fact.Begin(2, CsiState::kGone, 1);
  fact.End(1, CsiEnd::kDone, 3, 1);
  fact.End(2, CsiEnd::kDone, 4, 1);
  EXPECT_EQ(fact.known(), CsiState::kUnknown);
  fact.Begin(5, CsiState::kGone, 1);
  fact.End(5, CsiEnd::kDone, 6, 1);
  EXPECT_EQ(fact.known(), CsiState::kGone);
}

TEST(RandomFactsTest, ACallInDoubtIsOverOnceTheNextDaemonHasDoneOneForTheSameThing) {
  CsiFact fact(CsiState::kThere);
  fact.Begin(1, CsiState::kGone, 1);
  fact.End(1, CsiEnd::kMaybe, 2, 1);
  EXPECT_EQ(fact.known(), CsiState::kUnknown);
  fact.Begin(3, CsiState::kThere, 1);
  fact.End(3, CsiEnd::kDone, 4, 1);
  EXPECT_EQ(fact.known(), CsiState::kUnknown) << "the same daemon may take the first one yet";
  fact.Begin(5, CsiState::kThere, 2);
  fact.End(5, CsiEnd::kDone, 6, 2);
  EXPECT_EQ(fact.known(), CsiState::kThere);
}

}  // namespace
}  // namespace volumed::random_clients
