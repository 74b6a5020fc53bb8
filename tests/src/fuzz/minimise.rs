//! Makes an input that fails smaller while it still fails.

/// Removes lines, then characters, in ever smaller pieces, as long as `fails` says so and at most `tries` times.
pub fn minimise(text: &str, mut tries: usize, mut fails: impl FnMut(&str) -> bool) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let text = shrink(lines, &mut tries, &mut |lines| fails(&lines.concat())).concat();
    let chars: Vec<char> = text.chars().collect();
    shrink(chars, &mut tries, &mut |chars| fails(&String::from_iter(chars))).into_iter().collect()
}

fn shrink<T: Clone>(mut items: Vec<T>, tries: &mut usize, fails: &mut impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut size = items.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < items.len() && *tries > 0 {
            *tries -= 1;
            let mut fewer = items[..at].to_vec();
            fewer.extend_from_slice(&items[(at + size).min(items.len())..]);
            if fails(&fewer) {
                items = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    items
}

#[cfg(test)]
mod tests {
    use super::minimise;

    #[test]
    fn leaves_what_is_needed() {
        let text = "some\nlines and\na bug here\nand more\n";
        assert_eq!(minimise(text, 1000, |text| text.contains("bug")), "bug");
        assert_eq!(minimise(text, 0, |text| text.contains("bug")), text);
    }
}
