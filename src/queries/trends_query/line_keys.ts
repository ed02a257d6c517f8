import type { Expression } from '@exportd/dialect/ast';

/** Column names in all statements of trends. */
export const bucketColumn = 'bucket_start';

export const resultColumn = 'result';

export const actorColumn = 'actor';

/** The column names of a series' breakdowns. */
export const valueColumns = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `breakdown_${index + 1}`);

/** The keys of a series' lines, as expressions over an event. */
export interface LineKeys {
  /** The start of the event's interval; null if the range is a single interval. */
  readonly bucket: Expression | null;
  readonly values: readonly Expression[];
}

/** Column names of the keys, in column order. */
export const keyNames = ({
  bucket,
  values,
}: {
  readonly bucket: unknown;
  readonly values: readonly unknown[];
}): readonly string[] => [...(bucket === null ? [] : [bucketColumn]), ...valueColumns(values.length)];

/** The keys as columns of a SELECT over events. */
export const keyColumns = ({ bucket, values }: LineKeys): Readonly<Record<string, Expression>> => {
  const names = valueColumns(values.length);
  return {
    ...(bucket !== null && { [bucketColumn]: bucket }),
    ...Object.fromEntries(values.map((value, index) => [names[index] ?? '', value])),
  };
};
