const units: readonly (readonly [name: string, seconds: number])[] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

/** Seconds in at most two units: `2 h 5 min`, `45 s`, `120 ms`. A dash without a value. */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return '–';
  if (seconds < 0) return `−${formatDuration(-seconds)}`;
  if (seconds > 0 && seconds < 0.9995) return `${Math.max(1, Math.round(seconds * 1_000))} ms`;
  if (seconds < 10 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)} s`;
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [name, length] of units) {
    const amount = Math.floor(rest / length);
    rest -= amount * length;
    if (amount > 0) parts.push(`${amount} ${name}`);
    // Two adjacent units say enough: `2 d` rather than `2 d 5 s`.
    else if (parts.length === 1) break;
    if (parts.length === 2) break;
  }
  return parts.length === 0 ? '0 s' : parts.join(' ');
}
