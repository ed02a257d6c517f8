const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** Bytes in powers of 1,000 with three digits: `12.3 MB`. A dash without a value. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return '–';
  let amount = bytes;
  let unit = 0;
  while (amount >= 999.5 && unit < units.length - 1) {
    amount /= 1_000;
    unit += 1;
  }
  const digits = unit === 0 || amount >= 100 ? 0 : amount >= 10 ? 1 : 2;
  return `${amount.toFixed(digits)} ${units[unit] ?? ''}`;
}
