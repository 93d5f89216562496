#include "fakes/csi_fake_script.h"

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace volumed {
namespace {

using Json = nlohmann::json;
using Setter = std::function<void(CsiFakeRule&, const Json&)>;

template <typename Value>
Setter Into(Value CsiFakeRule::*member) {
  return [member](CsiFakeRule& rule, const Json& value) { rule.*member = value.get<Value>(); };
}

const std::map<std::string, Setter>& Members() {
  static const std::map<std::string, Setter> kMembers = {
      {"rpc", Into(&CsiFakeRule::rpc)},
      {"volume", Into(&CsiFakeRule::volume)},
      {"skip", Into(&CsiFakeRule::skip)},
      {"times", Into(&CsiFakeRule::times)},
      {"effect", Into(&CsiFakeRule::effect)},
      {"before_ms", Into(&CsiFakeRule::before_ms)},
      {"after_ms", Into(&CsiFakeRule::after_ms)},
      {"code", Into(&CsiFakeRule::code)},
      {"message", Into(&CsiFakeRule::message)},
      {"answer", [](CsiFakeRule& rule, const Json& value) { rule.answer = value.dump(); }},
      {"hang", Into(&CsiFakeRule::hang)},
      {"twice", Into(&CsiFakeRule::twice)},
      {"no_message", Into(&CsiFakeRule::no_message)},
      {"garbage", Into(&CsiFakeRule::garbage)},
      {"huge_bytes", Into(&CsiFakeRule::huge_bytes)},
      {"die", Into(&CsiFakeRule::die)},
      {"remove_sockets", Into(&CsiFakeRule::remove_sockets)}};
  return kMembers;
}

bool IsOfRegistration(std::string_view rpc) {
  return rpc == "GetInfo" || rpc == "NotifyRegistrationStatus";
}

bool IsFor(const CsiFakeRule& rule, std::string_view rpc, std::string_view volume) {
  const bool is_rpc = rule.rpc == "*" ? !IsOfRegistration(rpc) : rule.rpc == rpc;
  return is_rpc && (rule.volume.empty() || rule.volume == volume);
}

}  // namespace

std::vector<CsiFakeRule> ParseCsiFakeRules(std::string_view json, std::string* problem) {
  problem->clear();
  std::vector<CsiFakeRule> rules;
  try {
    const Json list = Json::parse(json);
    if (!list.is_array()) *problem = "a script is a list of rules";
    for (const Json& item : problem->empty() ? list : Json::array()) {
      CsiFakeRule rule;
      for (const auto& [key, value] : item.items()) {
        const auto member = Members().find(key);
        if (member == Members().end()) {
          *problem = "a rule has no \"" + key + "\"";
          return rules;
        }
        member->second(rule, value);
      }
      rules.push_back(std::move(rule));
    }
  } catch (const Json::exception& error) {
    *problem = error.what();
  }
  return rules;
}

void CsiFakeScript::Exchange(std::vector<CsiFakeRule> rules) {
  const std::lock_guard lock(mu_);
  rules_ = std::move(rules);
}

CsiFakeRule CsiFakeScript::Take(std::string_view rpc, std::string_view volume) {
  const std::lock_guard lock(mu_);
  for (CsiFakeRule& rule : rules_) {
    if (rule.times == 0 || !IsFor(rule, rpc, volume)) continue;
    if (rule.skip > 0) {
      --rule.skip;
      return {};
    }
    if (rule.times > 0) --rule.times;
    return rule;
  }
  return {};
}

}  // namespace volumed
