/** The whole numbers that a function takes at one place, from zero, where they are written out. */
export interface IntegerRange {
  readonly index: number;
  readonly min: number;
  readonly max: number;
  /** Only in calls with so many arguments. */
  readonly argumentCount?: number;
}

const range = (index: number, min: number, max = Infinity): IntegerRange => ({ index, min, max });

/** Of what stands in the first of two pairs of brackets. */
export const parameterRanges: ReadonlyMap<string, readonly IntegerRange[]> = new Map([
  ['topK', [range(0, 1, 16_777_215)]],
  ['groupArray', [range(0, 1)]],
  ['groupUniqArray', [range(0, 1)]],
  ['groupArraySample', [range(0, 1), range(1, 0)]],
  ['groupArrayMovingAvg', [range(0, 1)]],
  ['windowFunnel', [range(0, 0)]],
]);

/** Of arguments. One that is read from a row is not asked about: it gives null or is cut, so that no row ends a query. */
export const argumentRanges: ReadonlyMap<string, readonly IntegerRange[]> = new Map([
  ['ngrams', [range(1, 1)]],
  ['leftPad', [range(1, 0)]],
  ['rightPad', [range(1, 0)]],
  ['range', [{ ...range(0, 0), argumentCount: 1 }]],
  ['arrayWithConstant', [range(0, 0)]],
  ['toStartOfWeek', [range(1, 0, 255)]],
  ['toDateTime64', [range(1, 0, 9)]],
  ['bitShiftLeft', [range(1, 0)]],
  ['bitShiftRight', [range(1, 0)]],
  ['bitTest', [range(1, 0, 63)]],
  ['bar', [range(3, 1, 1_000)]],
  ['position', [range(2, 0)]],
  ['positionCaseInsensitive', [range(2, 0)]],
  ['locate', [range(2, 0)]],
  ['regexpExtract', [range(2, 0)]],
  ['nth_value', [range(1, 1)]],
  ['lagInFrame', [range(1, 0)]],
  ['leadInFrame', [range(1, 0)]],
]);
