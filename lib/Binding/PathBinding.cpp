//===- PathBinding.cpp - Finding tensors by tree path ---------------------===//

#include "fp8/Binding/PathBinding.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace fp8binding {

using Keys = std::vector<std::string>;

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

static bool isQuote(char c) { return c == '\'' || c == '"'; }

/// Reads a key behind `['`, which may hold dots and brackets, in the spelling
/// of Python's repr. Returns where its brackets end.
static size_t readQuoted(std::string_view path, size_t pos, std::string &name) {
  char quote = path[pos - 1];
  for (; pos < path.size(); ++pos) {
    char next = pos + 1 < path.size() ? path[pos + 1] : 0;
    if (path[pos] == quote && next == ']')
      return pos + 2;
    if (path[pos] == '\\' && (isQuote(next) || next == '\\'))
      ++pos;
    name += path[pos];
  }
  return pos;
}

/// Reads a key behind `[`: a number, or a tuple that may hold quoted texts.
static size_t readBracketed(std::string_view path, size_t pos,
                            std::string &name) {
  char quote = 0;
  for (; pos < path.size() && (quote || path[pos] != ']'); ++pos) {
    char c = path[pos];
    name += c;
    if (quote && c == '\\' && pos + 1 < path.size())
      name += path[++pos];
    else if (quote)
      quote = c == quote ? 0 : quote;
    else if (isQuote(c))
      quote = c;
  }
  return std::min(pos + 1, path.size());
}

std::vector<PathKey> tokenizePath(std::string_view path) {
  std::vector<PathKey> keys;
  for (size_t pos = 0; pos < path.size();) {
    PathKey key{"", pos, 0};
    if (path[pos] != '[') {
      pos += path[pos] == '.' || path[pos] == '/';
      key.end = std::min(path.find_first_of("[./", pos), path.size());
      key.name = path.substr(pos, key.end - pos);
    } else if (pos + 1 < path.size() && isQuote(path[pos + 1])) {
      key.end = readQuoted(path, pos + 2, key.name);
    } else {
      key.end = readBracketed(path, pos + 1, key.name);
    }
    pos = key.end;
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<std::string> splitPath(std::string_view path) {
  Keys keys;
  for (PathKey &key : tokenizePath(path))
    // Nothing between two dots is no key, but a quoted text may be empty.
    if (!key.name.empty() || path[key.begin] == '[')
      keys.push_back(std::move(key.name));
  return keys;
}

bool matchesPath(std::string_view pattern, std::string_view path) {
  // The last star in the pattern, and the end of the text that it matches.
  size_t p = 0, i = 0, star = std::string_view::npos, taken = 0;
  while (i < path.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = i;
    } else if (p < pattern.size() &&
               (pattern[p] == '?' || pattern[p] == path[i])) {
      ++p;
      ++i;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<size_t> findSeparators(std::string_view text) {
  std::vector<size_t> places;
  for (const PathKey &key : tokenizePath(text))
    if (text[key.begin] != '[')
      for (size_t at = key.begin; (at = text.find('=', at)) < key.end; ++at)
        places.push_back(at);
  return places;
}

std::optional<std::pair<std::string_view, std::string_view>>
splitAssignment(std::string_view text) {
  std::vector<size_t> places = findSeparators(text);
  if (places.empty())
    return std::nullopt;
  std::pair parts{text.substr(0, places.back()),
                  text.substr(places.back() + 1)};
  if (parts.first.empty() || parts.second.empty())
    return std::nullopt;
  return parts;
}

/// The keys from `begin` on as one text; no key holds the separator.
static std::string join(Keys::const_iterator begin, Keys::const_iterator end) {
  std::string text;
  for (; begin != end; ++begin)
    text += *begin + '\0';
  return text;
}

static bool startsWith(const Keys &keys, const Keys &prefix) {
  return keys.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), keys.begin());
}

static bool endsWith(const Keys &keys, const Keys &suffix) {
  return keys.size() >= suffix.size() &&
         std::equal(suffix.rbegin(), suffix.rend(), keys.rbegin());
}

/// "arg12" or "result3": a name that only counts.
static bool isCounted(const std::string &name) {
  size_t digits = name.rfind("arg", 0) == 0      ? 3
                  : name.rfind("result", 0) == 0 ? 6
                                                 : 0;
  return digits && digits < name.size() &&
         name.find_first_not_of("0123456789", digits) == std::string::npos;
}

//===----------------------------------------------------------------------===//
// Binding
//===----------------------------------------------------------------------===//

namespace {
/// Binds in steps from the surest evidence to the weakest; each one looks only
/// at what those before have left.
class Binder {
public:
  Binder(const std::vector<Leaf> &targets, const std::vector<Leaf> &sources)
      : targets(targets), sources(sources) {
    result.sources.assign(targets.size(), -1);
    used.assign(sources.size(), false);
    for (const Leaf &target : targets)
      targetKeys.push_back(splitPath(target.path));
    for (const Leaf &source : sources)
      sourceKeys.push_back(splitPath(source.path));
  }

  Binding run() {
    bindEqualPaths();
    bindCounted();
    bindGroups();
    bindSuffixes();
    listUnbound();
    return std::move(result);
  }

private:
  /// The targets with the same first key.
  struct Group {
    std::vector<size_t> members;
    std::unordered_map<std::string, size_t> byRest; // path without first key
  };

  /// A prefix of sources' paths that may stand for a group's first key.
  struct Candidate {
    Keys prefix;
    size_t first = 0;            // source
    size_t typed = 0, named = 0; // sources with a target below the prefix
  };
  using Candidates = std::map<std::string, Candidate>;

  void bind(size_t target, size_t source);
  bool isOpen(size_t target) const {
    return result.sources[target] < 0 && !wrongSource.count(target);
  }
  void bindEqualPaths();
  void bindCounted();
  void bindGroups();
  std::vector<Group> findGroups() const;
  Candidates findCandidates(const Group &group) const;
  const Candidate *choose(const Candidates &candidates,
                          const std::string &root) const;
  void bindBelow(const Keys &prefix, const Group &group);
  void bindSuffixes();
  int64_t findBySuffix(size_t source) const;
  void listUnbound();

  const std::vector<Leaf> &targets;
  const std::vector<Leaf> &sources;
  std::vector<Keys> targetKeys, sourceKeys;
  std::vector<bool> used;
  std::vector<Keys> taken; // prefixes that have a group
  std::map<size_t, size_t> wrongSource;
  Binding result;
};
} // namespace

void Binder::bind(size_t target, size_t source) {
  if (targets[target].type != sources[source].type) {
    wrongSource.emplace(target, source);
    return;
  }
  result.sources[target] = static_cast<int64_t>(source);
  used[source] = true;
}

/// A checkpoint of this very step leaves nothing to guess.
void Binder::bindEqualPaths() {
  std::unordered_map<std::string, size_t> byPath;
  for (size_t i = 0; i < sources.size(); ++i)
    byPath.emplace(sources[i].path, i);
  for (size_t i = 0; i < targets.size(); ++i) {
    auto found = byPath.find(targets[i].path);
    if (found != byPath.end())
      bind(i, found->second);
  }
}

/// Without names on both sides the order decides.
void Binder::bindCounted() {
  if (targets.size() != sources.size())
    return;
  for (size_t i = 0; i < targets.size(); ++i)
    if (!isCounted(targets[i].path) || !isCounted(sources[i].path) ||
        targets[i].type != sources[i].type || result.sources[i] >= 0)
      return;
  for (size_t i = 0; i < targets.size(); ++i)
    bind(i, i);
}

std::vector<Binder::Group> Binder::findGroups() const {
  std::map<std::string, size_t> indices;
  std::vector<Group> groups;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Keys &keys = targetKeys[i];
    if (!isOpen(i) || keys.empty())
      continue;
    auto [found, isNew] = indices.emplace(keys[0], groups.size());
    if (isNew)
      groups.emplace_back();
    Group &group = groups[found->second];
    group.members.push_back(i);
    group.byRest.emplace(join(keys.begin() + 1, keys.end()), i);
  }
  return groups;
}

void Binder::bindGroups() {
  std::vector<Group> groups = findGroups();
  // Large trees go first: what lies inside them is no scalar of its own.
  std::sort(groups.begin(), groups.end(), [](const Group &a, const Group &b) {
    return a.members.size() != b.members.size()
               ? a.members.size() > b.members.size()
               : a.members[0] < b.members[0];
  });
  for (const Group &group : groups) {
    Candidates candidates = findCandidates(group);
    const Candidate *best = choose(candidates, targetKeys[group.members[0]][0]);
    if (!best)
      continue;
    bindBelow(best->prefix, group);
    if (!best->prefix.empty())
      taken.push_back(best->prefix);
  }
}

/// Whether a key says more than a position does: "lr", but not "0" or "arg0".
static bool isName(const std::string &key) {
  size_t start = key.rfind("result", 0) == 0 ? 6
                 : key.rfind("arg", 0) == 0  ? 3
                                             : 0;
  return key.find_first_not_of("0123456789", start) != std::string::npos;
}

std::string nameOf(const std::string &path) {
  std::vector<std::string> keys = splitPath(path);
  return !keys.empty() && isName(keys.back()) ? keys.back() : "";
}

/// Whether a type has so many unrelated values that it says nothing: scalars
/// and integers (counters, keys of generators). Texts are those of the compiler
/// (tensor<2xui32>) or of the runtime (u32[2]).
static bool isCommon(const std::string &type) {
  bool isScalar =
      type.find("[]") != std::string::npos ||
      (type.rfind("tensor<", 0) == 0 && type.find('x') == std::string::npos);
  bool isInteger = false;
  for (size_t i = 0; i + 1 < type.size(); ++i)
    isInteger |= (type[i] == 'i' || type[i] == 'u') && type[i + 1] >= '0' &&
                 type[i + 1] <= '9';
  return isScalar || isInteger;
}

Binder::Candidates Binder::findCandidates(const Group &group) const {
  Candidates candidates;
  const std::string &root = targetKeys[group.members[0]][0];
  for (size_t i = 0; i < sources.size(); ++i) {
    if (used[i])
      continue;
    const Keys &keys = sourceKeys[i];
    for (size_t split = 0; split <= keys.size(); ++split) {
      auto found = group.byRest.find(join(keys.begin() + split, keys.end()));
      if (found == group.byRest.end())
        continue;
      bool sameType = targets[found->second].type == sources[i].type;
      // A whole path stands for any name: only the type tells, if it can.
      if (split == keys.size() && (keys.empty() || keys.back() != root) &&
          (!sameType || (isCommon(sources[i].type) && !keys.empty() &&
                         isName(keys.back()) && isName(root))))
        continue;
      Candidate &candidate =
          candidates[join(keys.begin(), keys.begin() + split)];
      if (candidate.named == 0) {
        candidate.prefix.assign(keys.begin(), keys.begin() + split);
        candidate.first = i;
      }
      ++candidate.named;
      candidate.typed += sameType;
    }
  }
  return candidates;
}

/// The best candidate that lies in no group that is bound already.
const Binder::Candidate *Binder::choose(const Candidates &candidates,
                                        const std::string &root) const {
  auto rank = [&](const Candidate &candidate) {
    bool sameName =
        !candidate.prefix.empty() && candidate.prefix.back() == root;
    return std::make_tuple(-static_cast<int64_t>(candidate.typed),
                           -static_cast<int64_t>(candidate.named), !sameName,
                           candidate.prefix.size(), candidate.first);
  };
  const Candidate *best = nullptr;
  for (const auto &[text, candidate] : candidates) {
    bool isTaken = std::any_of(taken.begin(), taken.end(),
                               [&, &c = candidate](const Keys &other) {
                                 return startsWith(c.prefix, other);
                               });
    if (!isTaken && (!best || rank(candidate) < rank(*best)))
      best = &candidate;
  }
  return best;
}

void Binder::bindBelow(const Keys &prefix, const Group &group) {
  for (size_t i = 0; i < sources.size(); ++i) {
    const Keys &keys = sourceKeys[i];
    if (used[i] || !startsWith(keys, prefix))
      continue;
    auto found =
        group.byRest.find(join(keys.begin() + prefix.size(), keys.end()));
    if (found != group.byRest.end() && result.sources[found->second] < 0)
      bind(found->second, i);
  }
}

/// A source that is left goes to the target whose path its whole path ends.
void Binder::bindSuffixes() {
  for (size_t i = 0; i < sources.size(); ++i) {
    if (used[i] || sourceKeys[i].empty())
      continue;
    int64_t target = findBySuffix(i);
    if (target >= 0)
      bind(target, i);
  }
}

/// Of several targets, the one with the shortest path; -1 if two have it.
int64_t Binder::findBySuffix(size_t source) const {
  int64_t best = -1;
  bool isUnique = true;
  for (size_t j = 0; j < targets.size(); ++j) {
    const Keys &keys = targetKeys[j];
    if (!isOpen(j) || targets[j].type != sources[source].type ||
        !endsWith(keys, sourceKeys[source]))
      continue;
    if (best >= 0 && keys.size() == targetKeys[best].size())
      isUnique = false;
    if (best < 0 || keys.size() < targetKeys[best].size()) {
      best = static_cast<int64_t>(j);
      isUnique = true;
    }
  }
  return isUnique ? best : -1;
}

void Binder::listUnbound() {
  for (size_t i = 0; i < targets.size(); ++i)
    if (isOpen(i))
      result.missing.push_back(static_cast<int64_t>(i));
  for (auto [target, source] : wrongSource)
    if (result.sources[target] < 0) {
      result.misshaped.emplace_back(target, source);
      used[source] = true;
    }
  for (size_t i = 0; i < sources.size(); ++i)
    if (!used[i])
      result.extra.push_back(static_cast<int64_t>(i));
}

Binding bindByPath(const std::vector<Leaf> &targets,
                   const std::vector<Leaf> &sources) {
  return Binder(targets, sources).run();
}

} // namespace fp8binding
