/** The range of an integer literal argument, by index from 0. */
export interface IntegerRange {
  readonly index: number;
  readonly min: number;
  readonly max: number;
  /** Applies only to calls with this number of arguments. */
  readonly argumentCount?: number;
}

const range = (index: number, min: number, max = Infinity): IntegerRange => ({ index, min, max });

/** Ranges of parameters, in the first of two pairs of parentheses. */
export const parameterRanges: ReadonlyMap<string, readonly IntegerRange[]> = new Map([
  ['topK', [range(0, 1, 16_777_215)]],
  ['groupArray', [range(0, 1)]],
  ['groupUniqArray', [range(0, 1)]],
  ['groupArraySample', [range(0, 1), range(1, 0)]],
  ['groupArrayMovingAvg', [range(0, 1)]],
  ['windowFunnel', [range(0, 0)]],
]);

/**
 * Ranges of arguments. Values read from rows are not checked: they yield null or are clamped, so that no row fails a
 * query.
 */
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
