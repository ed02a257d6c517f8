import type { Expression } from '../../dialect/ast.ts';

/** Names of the columns of rows, in all statements of trends. */
export const bucketColumn = 'bucket_start';
export const resultColumn = 'result';
export const actorColumn = 'actor';

/** The columns of a series' breakdowns. */
export const valueColumns = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `breakdown_${index + 1}`);

/** What the lines of a series are told apart by: expressions over an event. */
export interface LineKeys {
  /** Where the event's interval begins; null where the range is one interval. */
  readonly bucket: Expression | null;
  readonly values: readonly Expression[];
}

/** Names of the keys, in the order of the columns. */
export const keyNames = ({
  bucket,
  values,
}: {
  readonly bucket: unknown;
  readonly values: readonly unknown[];
}): readonly string[] => [...(bucket === null ? [] : [bucketColumn]), ...valueColumns(values.length)];

/** The keys as columns of an event. */
export const keyColumns = ({ bucket, values }: LineKeys): Readonly<Record<string, Expression>> => {
  const names = valueColumns(values.length);
  return {
    ...(bucket !== null && { [bucketColumn]: bucket }),
    ...Object.fromEntries(values.map((value, index) => [names[index] ?? '', value])),
  };
};
