import { type GeneratedKind, orderedKinds, scalarKinds } from './kinds.ts';
import type { Random } from './random.ts';

/** A call of an aggregate whose result has the kind; `of` creates its arguments. */
export function aggregateCall(
  kind: GeneratedKind,
  random: Random,
  of: (kind: GeneratedKind) => string,
): string {
  const condition = (): string => of('boolean');
  const filter = random.oneIn(6) ? ` FILTER (WHERE ${condition()})` : '';
  const call = (name: string, ...values: readonly string[]): string => {
    const suffix = random.oneIn(6) ? 'OrNull' : random.oneIn(4) ? 'OrDefault' : '';
    return random.oneIn(4)
      ? `${name}${suffix}If(${[...values, condition()].join(', ')})${filter}`
      : `${name}${suffix}(${values.join(', ')})${filter}`;
  };
  const any = random.one(scalarKinds);
  const sameKind: (() => string)[] =
    kind === 'integers' || kind === 'strings'
      ? []
      : [
          () => call(random.one(['min', 'max']), of(kind)),
          () => call(random.one(['argMin', 'argMax']), of(kind), of(random.one(orderedKinds))),
          () => call('any', of(kind)),
        ];
  switch (kind) {
    case 'integer':
      return random.one([
        ...sameKind,
        () => `count()${filter}`,
        () => `countIf(${condition()})`,
        () => call('count', of(any)),
        () => `count(DISTINCT ${of(any)})${filter}`,
        () => `uniq(${of(any)}, ${of(random.one(scalarKinds))})`,
        () => call(random.one(['uniq', 'uniqExact', 'countDistinct', 'sum']), of('integer')),
        () => `sum(DISTINCT ${of('integer')})`,
        () => call(random.one(['groupBitAnd', 'groupBitOr', 'groupBitXor']), of('integer')),
      ])();
    case 'float':
      return random.one([
        ...sameKind,
        () => call(random.one(['sum', 'avg', 'median']), of('float')),
        () => call('avg', of('integer')),
        () => `quantile(${random.one(['0', '0.25', '0.9', '1'])})(${of('integer')})${filter}`,
        () => `round(${random.one(['varPop', 'stddevPop'])}(${of('integer')}))`,
      ])();
    case 'integers':
    case 'strings': {
      const item = kind === 'integers' ? 'integer' : 'string';
      return `arraySort(${call(random.one(['groupArray', 'groupUniqArray']), of(item))
        .replace('OrNull', '')
        .replace('OrDefault', '')})`;
    }
    default:
      return random.one(sameKind)();
  }
}
