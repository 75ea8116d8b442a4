//===- Binding.cpp - Finding tensors by tree path -------------------------===//

#include "Binding.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace fp8::rt {

std::vector<std::string> splitPath(const std::string &path) {
  std::vector<std::string> keys;
  std::string key;
  auto finish = [&] {
    if (!key.empty())
      keys.push_back(key);
    key.clear();
  };
  for (size_t i = 0; i < path.size(); ++i) {
    char c = path[i];
    if (c == '.' || c == '/') {
      finish();
    } else if (c == '[') {
      finish();
      char quote = i + 1 < path.size() ? path[i + 1] : 0;
      if (quote == '\'' || quote == '"') {
        // A quoted key may hold dots and brackets.
        size_t end = path.find(std::string(1, quote) + "]", i + 2);
        if (end == std::string::npos)
          end = path.size();
        keys.push_back(path.substr(i + 2, end - i - 2));
        i = std::min(end + 1, path.size());
      }
    } else if (c == ']') {
      finish();
    } else {
      key += c;
    }
  }
  finish();
  return keys;
}

namespace {
using Keys = std::vector<std::string>;

std::string join(Keys::const_iterator begin, Keys::const_iterator end) {
  std::string text;
  for (; begin != end; ++begin)
    text += *begin + '\0';
  return text;
}

bool startsWith(const Keys &keys, const Keys &prefix) {
  return keys.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), keys.begin());
}

/// "arg12" or "result3": a name that only counts.
bool isCounted(const std::string &name) {
  size_t digits = name.rfind("arg", 0) == 0      ? 3
                  : name.rfind("result", 0) == 0 ? 6
                                                 : 0;
  return digits && digits < name.size() &&
         name.find_first_not_of("0123456789", digits) == std::string::npos;
}

class Binder {
public:
  Binder(const std::vector<Named> &targets, const std::vector<Named> &sources)
      : targets(targets), sources(sources) {
    result.sources.assign(targets.size(), -1);
    used.assign(sources.size(), false);
    for (const Named &target : targets)
      targetKeys.push_back(splitPath(target.name));
    for (const Named &source : sources)
      sourceKeys.push_back(splitPath(source.name));
  }

  Binding run() {
    bindEqualNames();
    bindCounted();
    bindGroups();
    bindSuffixes();
    for (size_t i = 0; i < targets.size(); ++i)
      if (result.sources[i] < 0 && !wrongSource.count(i))
        result.missing.push_back(i);
    for (auto [target, source] : wrongSource)
      if (result.sources[target] < 0) {
        result.misshaped.emplace_back(target, source);
        used[source] = true;
      }
    for (size_t i = 0; i < sources.size(); ++i)
      if (!used[i])
        result.extra.push_back(i);
    return std::move(result);
  }

private:
  void bind(size_t target, size_t source) {
    if (targets[target].type != sources[source].type) {
      wrongSource.emplace(target, source);
      return;
    }
    result.sources[target] = source;
    used[source] = true;
  }

  /// A checkpoint of this very step: nothing to guess.
  void bindEqualNames() {
    std::unordered_map<std::string, size_t> byName;
    for (size_t i = 0; i < sources.size(); ++i)
      byName.emplace(sources[i].name, i);
    for (size_t i = 0; i < targets.size(); ++i) {
      auto found = byName.find(targets[i].name);
      if (found != byName.end())
        bind(i, found->second);
    }
  }

  /// Without names on both sides the order decides.
  void bindCounted() {
    if (targets.size() != sources.size())
      return;
    for (size_t i = 0; i < targets.size(); ++i)
      if (!isCounted(targets[i].name) || !isCounted(sources[i].name) ||
          targets[i].type != sources[i].type || result.sources[i] >= 0)
        return;
    for (size_t i = 0; i < targets.size(); ++i)
      bind(i, i);
  }

  struct Group {
    std::vector<size_t> members;
    std::unordered_map<std::string, size_t> byRest; // path without first key
  };

  void bindGroups() {
    std::map<std::string, size_t> indices;
    std::vector<Group> groups;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (result.sources[i] >= 0 || wrongSource.count(i) ||
          targetKeys[i].empty())
        continue;
      auto [found, isNew] = indices.emplace(targetKeys[i][0], groups.size());
      if (isNew)
        groups.emplace_back();
      Group &group = groups[found->second];
      group.members.push_back(i);
      group.byRest.emplace(join(targetKeys[i].begin() + 1, targetKeys[i].end()),
                           i);
    }
    // Large trees first: what lies inside them is no scalar of its own.
    std::sort(groups.begin(), groups.end(), [](const Group &a, const Group &b) {
      return a.members.size() != b.members.size()
                 ? a.members.size() > b.members.size()
                 : a.members[0] < b.members[0];
    });
    for (const Group &group : groups)
      bindGroup(group);
  }

  void bindGroup(const Group &group) {
    struct Candidate {
      Keys prefix;
      size_t first;
      size_t typed = 0, named = 0;
    };
    std::map<std::string, Candidate> candidates;
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
        // A whole path stands for any name: only the type tells.
        if (split == keys.size() && !sameType &&
            (keys.empty() || keys.back() != root))
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
    const Candidate *best = nullptr;
    auto rank = [&](const Candidate &candidate) {
      bool sameName =
          !candidate.prefix.empty() && candidate.prefix.back() == root;
      return std::make_tuple(-static_cast<int64_t>(candidate.typed),
                             -static_cast<int64_t>(candidate.named), !sameName,
                             candidate.prefix.size(), candidate.first);
    };
    for (const auto &[text, candidate] : candidates) {
      bool isTaken = std::any_of(taken.begin(), taken.end(),
                                 [&, &c = candidate](const Keys &other) {
                                   return startsWith(c.prefix, other);
                                 });
      if (!isTaken && (!best || rank(candidate) < rank(*best)))
        best = &candidate;
    }
    if (!best)
      return;
    for (size_t i = 0; i < sources.size(); ++i) {
      const Keys &keys = sourceKeys[i];
      if (used[i] || !startsWith(keys, best->prefix))
        continue;
      auto found = group.byRest.find(
          join(keys.begin() + best->prefix.size(), keys.end()));
      if (found != group.byRest.end() && result.sources[found->second] < 0)
        bind(found->second, i);
    }
    if (!best->prefix.empty())
      taken.push_back(best->prefix);
  }

  /// What is left: a source whose whole path ends one target's, and of several
  /// targets the one with the shortest path.
  void bindSuffixes() {
    for (size_t i = 0; i < sources.size(); ++i) {
      const Keys &keys = sourceKeys[i];
      if (used[i] || keys.empty())
        continue;
      int64_t best = -1;
      bool isUnique = true;
      for (size_t j = 0; j < targets.size(); ++j) {
        const Keys &other = targetKeys[j];
        if (result.sources[j] >= 0 || wrongSource.count(j) ||
            targets[j].type != sources[i].type || other.size() < keys.size() ||
            !std::equal(keys.rbegin(), keys.rend(), other.rbegin()))
          continue;
        if (best >= 0 && other.size() == targetKeys[best].size())
          isUnique = false;
        if (best < 0 || other.size() < targetKeys[best].size()) {
          best = static_cast<int64_t>(j);
          isUnique = true;
        }
      }
      if (best >= 0 && isUnique)
        bind(best, i);
    }
  }

  const std::vector<Named> &targets;
  const std::vector<Named> &sources;
  std::vector<Keys> targetKeys, sourceKeys;
  std::vector<bool> used;
  std::vector<Keys> taken; // prefixes that have a group
  std::map<size_t, size_t> wrongSource;
  Binding result;
};
} // namespace

Binding bindByPath(const std::vector<Named> &targets,
                   const std::vector<Named> &sources) {
  return Binder(targets, sources).run();
}

std::string describe(const Binding &binding, const std::string &title,
                     const std::vector<Named> &targets,
                     const std::vector<Named> &sources) {
  constexpr size_t most = 12; // of each sort
  std::string text = title;
  auto list = [&](size_t count, const char *what, auto &&line) {
    if (count == 0)
      return;
    text += str("\n  ", count, " ", what, ":");
    for (size_t i = 0; i < std::min(count, most); ++i)
      text += "\n    " + line(i);
    if (count > most)
      text += str("\n    ... and ", count - most, " more");
  };
  list(binding.missing.size(), "missing", [&](size_t i) {
    const Named &target = targets[binding.missing[i]];
    return target.name + " " + target.type.text();
  });
  list(binding.misshaped.size(), "of another type", [&](size_t i) {
    auto [target, source] = binding.misshaped[i];
    return str(targets[target].name, ": expected ", targets[target].type.text(),
               " but got ", sources[source].type.text(),
               sources[source].name == targets[target].name
                   ? ""
                   : str(" (", sources[source].name, ")"));
  });
  list(binding.extra.size(), "not wanted", [&](size_t i) {
    const Named &source = sources[binding.extra[i]];
    return source.name + " " + source.type.text();
  });
  return text;
}

} // namespace fp8::rt

using namespace fp8::rt;

fp8_status fp8_bind_by_path(const fp8_paths *targets, const fp8_paths *sources,
                            int64_t *bound) {
  return guard([&] {
    if (!targets || !sources || (targets->count > 0 && !bound))
      throw Error(FP8_ERROR_INVALID, "expected paths but got none");
    // Types are only compared: a number each will do.
    std::map<std::string, int64_t> numbers;
    auto read = [&](const fp8_paths &paths) {
      std::vector<Named> out;
      for (int64_t i = 0; i < paths.count; ++i) {
        int64_t number = static_cast<int64_t>(numbers.size());
        TensorType type;
        type.dims = {numbers.emplace(paths.types[i], number).first->second};
        out.push_back({paths.names[i], type});
      }
      return out;
    };
    std::vector<Named> to = read(*targets), from = read(*sources);
    Binding binding = bindByPath(to, from);
    std::copy(binding.sources.begin(), binding.sources.end(), bound);
  });
}
