import { isVariable, type PrefixVariable } from './prefix.ts';

/**
 * A character of a rendered prefix: itself where the template holds it, else the name of a digit of a time, such as
 * `start.month.0`.
 */
type Mark = string;

const isLiteral = (mark: Mark): boolean => mark.length === 1;

/** The values that a part of an interval's bound can have; boundaries are whole minutes. */
const parts: Readonly<
  Record<string, { readonly digits: number; readonly least: number; readonly most: number }>
> = {
  year: { digits: 4, least: 0, most: 9_999 },
  month: { digits: 2, least: 1, most: 12 },
  day: { digits: 2, least: 1, most: 31 },
  hour: { digits: 2, least: 0, most: 23 },
  minute: { digits: 2, least: 0, most: 59 },
  second: { digits: 2, least: 0, most: 0 },
};
const bounds = ['start', 'end'] as const;

const digitMarks = (bound: string, part: string): Mark[] =>
  Array.from({ length: parts[part]?.digits ?? 0 }, (_, digit) => `${bound}.${part}.${digit}`);

const timeMarks = (bound: string): Mark[] => [
  ...['year', 'month', 'day'].flatMap((part) => digitMarks(bound, part)),
  'T',
  ...['hour', 'minute', 'second'].flatMap((part) => digitMarks(bound, part)),
  'Z',
];

function variableMarks(variable: PrefixVariable, table: string): Mark[] {
  if (variable === 'table') return table.split('');
  if (variable === 'data_interval_start') return timeMarks('start');
  if (variable === 'data_interval_end') return timeMarks('end');
  return digitMarks('start', variable);
}

const marksOf = ({ template, table }: PrefixTemplate): Mark[] =>
  template
    .replace(/\/$/, '')
    .split(/\{([^{}]*)\}/)
    .flatMap((piece, position) =>
      position % 2 === 1 && isVariable(piece) ? variableMarks(piece, table) : piece.split(''),
    );

/** A checked template with the name that `{table}` stands for. */
export interface PrefixTemplate {
  readonly template: string;
  readonly table: string;
}

/**
 * Whether two templates lead to the same path for some interval, so that `{year}` meets a year that is written out. All
 * variables but the table have a fixed length: the templates are laid side by side, and what stands at the same place
 * has to be the same. Rather says yes than no: that a month has no 31st is not looked at.
 */
export function prefixesOverlap(one: PrefixTemplate, other: PrefixTemplate): boolean {
  const marks = marksOf(one);
  const others = marksOf(other);
  if (marks.length !== others.length) return false;
  const equals = new Map<Mark, ReadonlySet<Mark>>();
  const equalTo = (mark: Mark): ReadonlySet<Mark> => equals.get(mark) ?? new Set([mark]);
  for (const [position, mark] of marks.entries()) {
    const joined = new Set([...equalTo(mark), ...equalTo(others[position] ?? mark)]);
    for (const field of joined) equals.set(field, joined);
  }
  const literalOf = (mark: Mark): Mark | undefined => [...equalTo(mark)].find(isLiteral);
  return (
    [...equals.values()].every((joined) => [...joined].filter(isLiteral).length < 2) &&
    bounds.every((bound) =>
      Object.keys(parts).every((part) => hasValue(part, digitMarks(bound, part).map(literalOf))),
    )
  );
}

/** Whether a part can have these digits, of which some are not known. */
function hasValue(part: string, known: readonly (Mark | undefined)[]): boolean {
  const { digits = 0, least = 0, most = 0 } = parts[part] ?? {};
  for (let value = least; value <= most; value++) {
    const text = String(value).padStart(digits, '0');
    if (known.every((digit, position) => digit === undefined || digit === text[position])) return true;
  }
  return false;
}
