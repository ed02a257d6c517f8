/** Stands for events without a value. */
export const nullValue = '$$_posthog_breakdown_null_$$';
/** Stands for all values without a separate line. */
export const otherValue = '$$_posthog_breakdown_other_$$';

const placeholderLabels: ReadonlyMap<string, string> = new Map([
  [nullValue, 'None (i.e. no value)'],
  [otherValue, 'Other (i.e. all remaining values)'],
]);

/** The label of breakdown values. */
export const breakdownLabel = (values: readonly string[]): string =>
  values.map((value) => placeholderLabels.get(value) ?? value).join('::');
