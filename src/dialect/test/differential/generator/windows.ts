import { type Atom, type GeneratedKind, orderedKinds } from './kinds.ts';
import { literalOf } from './literals.ts';
import type { Random } from './random.ts';

/** A window function whose result has the kind; `of` creates its arguments. */
export function windowCall(
  kind: GeneratedKind,
  random: Random,
  atoms: readonly Atom[],
  of: (kind: GeneratedKind) => string,
): string {
  const isScalar = (atom: Atom): boolean => atom.kind !== 'integers' && atom.kind !== 'strings';
  const columns = atoms.filter(isScalar);
  const column = (): string =>
    columns.length === 0 ? literalOf(random.one(orderedKinds), random) : random.one(columns).text;
  const partition = random.oneIn(2) ? `PARTITION BY ${column()} ` : '';
  const order = random.some(columns, 1, 3);
  const sorted =
    order.length === 0
      ? ''
      : `ORDER BY ${order.map(({ text }) => `${text}${random.one(['', ' DESC'])}`).join(', ')}`;
  const frame =
    sorted !== '' && random.oneIn(3)
      ? ` ROWS BETWEEN ${random.one(['1', '2', 'UNBOUNDED'])} PRECEDING AND ${random.one(['CURRENT ROW', '1 FOLLOWING'])}`
      : '';
  const over = ` OVER (${partition}${sorted}${frame})`;
  const choices: (() => string)[] = [
    () => `${random.one(['min', 'max'])}(${of(kind)})${over}`,
    () => `${random.one(['first_value', 'last_value'])}(${of(kind)})${over}`,
    () =>
      `${random.one(['lag', 'lead'])}(${of(kind)}, ${random.one(['1', '2'])}, ${of(kind)}) OVER (${partition}${sorted})`,
  ];
  if (kind === 'integer')
    choices.push(
      () => `${random.one(['row_number', 'rank', 'dense_rank'])}() OVER (${partition}${sorted})`,
      () => `${random.one(['sum', 'count'])}(${of('integer')})${over}`,
      () => `count()${over}`,
    );
  if (kind === 'float') choices.push(() => `avg(${of('integer')})${over}`);
  return random.one(choices)();
}
