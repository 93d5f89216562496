#include "kube/manifest_peers.h"

#include <utility>

namespace volumed {

void ManifestPeers::Join(const std::string& source, std::function<void()> changed) {
  peers_[source].changed = std::move(changed);
}

void ManifestPeers::Leave(const std::string& source) {
  if (peers_.erase(source) > 0) TellOthers(source);
}

void ManifestPeers::Tell(const std::string& source, ManifestDoubts doubts) {
  Peer& peer = peers_.at(source);
  if (peer.doubts == doubts) return;
  peer.doubts = std::move(doubts);
  TellOthers(source);
}

void ManifestPeers::TellOthers(const std::string& source) const {
  for (const auto& [name, peer] : peers_) {
    if (name != source) peer.changed();
  }
}

ManifestDoubts ManifestPeers::DoubtsOfOthers(const std::string& source) const {
  ManifestDoubts all;
  for (const auto& [name, peer] : peers_) {
    if (name == source) continue;
    const std::optional<ManifestSuspect>& suspect = peer.doubts.suspect;
    const bool is_later = suspect && (!all.suspect || suspect->touched > all.suspect->touched);
    if (is_later) all.suspect = suspect;
    const std::optional<ManifestAbsentDirectory>& absent = peer.doubts.absent;
    if (absent && (!all.absent || absent->since > all.absent->since)) all.absent = absent;
    all.busy.insert(peer.doubts.busy.begin(), peer.doubts.busy.end());
  }
  return all;
}

}  // namespace volumed
