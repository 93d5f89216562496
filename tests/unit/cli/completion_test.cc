#include "cli/completion.h"

#include <gtest/gtest.h>

#include "cli/command_line.h"

namespace volumed {
namespace {

using Words = std::vector<std::string>;

class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() { AddCommands(app_, words_, chosen_); }
  Words Offers(const Words& words) {
    return Complete(app_, words, [this](const LineOptions& options, const std::string& kind) {
      asked_.push_back(kind);
      socket_ = options.socket;
      name_space_ = options.name_space;
      if (kind == "pod") return Words{"web", "worker"};
      if (kind == "volume") return Words{"web/data", "web/cache", "worker/data"};
      if (kind == "secret") return Words{"s1"};
      if (kind == "pv" || kind == "persistentvolume") return Words{"disk"};
      if (kind == "pvc" || kind == "persistentvolumeclaim") return Words{"data"};
      return Words{};
    });
  }

  CommonWords words_;
  Verb chosen_;
  CLI::App app_{"volumectl"};
  Words asked_;
  std::string socket_, name_space_;
};

TEST_F(CompletionTest, OffersTheVerbsOfTheTree) {
  const Words verbs = Offers({""});
  for (const CLI::App* verb : app_.get_subcommands([](const CLI::App*) { return true; })) {
    EXPECT_NE(std::find(verbs.begin(), verbs.end(), verb->get_name()), verbs.end())
        << verb->get_name();
  }
  EXPECT_EQ(Offers({"source", ""}), (Words{"accept", "forget"}));
  EXPECT_TRUE(asked_.empty());
}

TEST_F(CompletionTest, EveryPlaceOfEveryVerbHasSomethingToOfferOrIsFreeText) {
  const std::set<std::string> free_text = {"container", "rpc", "pv-name"};
  const std::set<std::string> known = {"KIND",   "NAME", "NOUN",   "OBJECT",   "POD", "VOLUME",
                                       "SOURCE", "FILE", "DRIVER", "SNAPSHOT", "PV",  "POOLVOLUME"};
  const std::function<void(const CLI::App&)> check = [&](const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
      const bool flag = !option->get_lnames().empty() || !option->get_snames().empty();
      if (flag || free_text.contains(option->get_name())) continue;
      const std::string type = option->get_type_name();
      EXPECT_TRUE(known.contains(type) || type.find('{') != std::string::npos)
          << app.get_name() << " " << option->get_name() << " is a " << type;
    }
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
      check(*verb);
    }
  };
  check(app_);
}

TEST_F(CompletionTest, OptionsAndTheirValuesDoNotCountAsPlaces) {
  EXPECT_EQ(Offers({"-n", "prod", "--socket=/s", "explain", "w"}), (Words{"web", "worker"}));
  EXPECT_EQ(socket_, "/s");
  EXPECT_EQ(name_space_, "prod");
  EXPECT_EQ(Offers({"retry", "web", "-n", "x", "c"}), Words{"cache"});
  EXPECT_EQ(Offers({"delete", "--force", "secret", ""}), Words{"s1"});
}

TEST_F(CompletionTest, ValuesOfOptionsAreTheirChoices) {
  EXPECT_EQ(Offers({"get", "-o", ""}), (Words{"table", "wide", "json", "yaml"}));
  // As bash splits --output=j.
  EXPECT_EQ(Offers({"get", "--output", "=", "j"}), Words{"json"});
  EXPECT_EQ(Offers({"get", "--output", "="}), (Words{"table", "wide", "json", "yaml"}));
  EXPECT_EQ(Offers({"apply", "-f", ""}), Words{kCompleteFiles});
  EXPECT_EQ(Offers({"pool", "import", ""}), Words{kCompleteFiles});
  EXPECT_TRUE(Offers({"wait", "web", "--timeout", ""}).empty());
}

TEST_F(CompletionTest, AVolumeCannotBeDeletedAndADriverCanBeForgotten) {
  const Words deletable = Offers({"delete", ""});
  EXPECT_EQ(std::count(deletable.begin(), deletable.end(), "driver"), 1);
  EXPECT_EQ(std::count(deletable.begin(), deletable.end(), "volume"), 0);
  EXPECT_EQ(Offers({"describe", "vol"}), (Words{"volume", "volumeattachment", "volumesnapshot",
                                                "volumesnapshotcontent", "volumesnapshotclass"}));
}

TEST_F(CompletionTest, NounsOfGetAreFollowedByTheirNames) {
  EXPECT_EQ(Offers({"get", "p"}),
            (Words{"pods", "persistentvolumes", "persistentvolumeclaims", "pools", "pool-volumes",
                   "po", "pv", "pvc", "pool", "pool-volume"}));
  EXPECT_EQ(Offers({"get", "pv", ""}), Words{"disk"});
  EXPECT_EQ(Offers({"get", "persistentvolumeclaims", ""}), Words{"data"});
  EXPECT_EQ(Offers({"get", "volumes", "wo"}), Words{"worker"}) << "the pod that has them";
  EXPECT_EQ(Offers({"get", "po", "we"}), Words{"web"});
}

TEST_F(CompletionTest, EventsAreOfPodsOrOfAKindAndName) {
  EXPECT_EQ(Offers({"events", ""}), (Words{"web", "worker", "pv/disk", "pvc/data"}));
  EXPECT_EQ(Offers({"events", "pv"}), (Words{"pv/disk", "pvc/data"}));
  asked_.clear();
  EXPECT_EQ(Offers({"events", "pvc/"}), Words{"pvc/data"});
  EXPECT_EQ(asked_, Words{"pvc"}) << "nothing else is looked up";
}

TEST_F(CompletionTest, BeyondTheLastPlaceNothingIsOffered) {
  EXPECT_TRUE(Offers({"explain", "web", ""}).empty());
  EXPECT_TRUE(Offers({"no-such-verb", ""}).empty());
}

TEST_F(CompletionTest, ScriptsAreForTheShellsThatAreNamed) {
  EXPECT_NE(CompletionScript("bash")->find("complete -F _volumectl volumectl"), std::string::npos);
  EXPECT_EQ(CompletionScript("zsh")->find("#compdef volumectl"), 0u);
  EXPECT_FALSE(CompletionScript("fish").has_value());
}

}  // namespace
}  // namespace volumed
