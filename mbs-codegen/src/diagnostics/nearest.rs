//! The valid name nearest to a mistyped one.

/// The candidate nearest to `name` in edit distance ignoring case, if it is near enough to be worth proposing.
///
/// Ties go to the earlier candidate, so the answer is deterministic.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(MAX_LEN + 1).flat_map(char::to_lowercase).collect();
    if name.len() > MAX_LEN {
        return None;
    }
    let allowed = ((name.len() + 1) / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other: Vec<char> = candidate.chars().take(MAX_LEN + 1).flat_map(char::to_lowercase).collect();
        if other.len() > MAX_LEN || name.len().abs_diff(other.len()) > allowed {
            continue;
        }
        let d = distance(&name, &other);
        // A one-letter name is near every other one-letter name: that would be noise.
        if d <= allowed && d < name.len().max(other.len()) && best.is_none_or(|(b, _)| d < b) {
            best = Some((d, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Longer names are not compared.
const MAX_LEN: usize = 160;

/// Edit distance with insertions, deletions, substitutions and swaps of neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_near_and_not_the_far() {
        let names = ["crank", "coupler", "rocker", "x"];
        assert_eq!(nearest("cranck", names), Some("crank"));
        assert_eq!(nearest("Cuopler", names), Some("coupler"));
        assert_eq!(nearest("wheel", names), None);
        assert_eq!(nearest("y", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("Crank", names), Some("crank"));
    }
}
