const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** A number with separators: `1,234,567`. A dash without a value. */
export const formatCount = (count: number | null | undefined): string =>
  count === null || count === undefined ? '–' : whole.format(count);

/** A number in little space: `1.2M`. A dash without a value. */
export const formatShortCount = (count: number | null | undefined): string =>
  count === null || count === undefined ? '–' : compact.format(count);

/** `1 row`, `2 rows`. */
export const formatQuantity = (count: number, unit: string): string =>
  `${whole.format(count)} ${unit}${count === 1 ? '' : 's'}`;
