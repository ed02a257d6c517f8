import { describe, expect, it } from '@jest/globals';
import { arityOf } from '../functions/function_definition.ts';
import {
  findFunction,
  functionDefinitions,
  unsupportedHint,
  suggestFunction,
} from '../functions/registry.ts';
import { functionCases } from './functions/function_cases.ts';
import { referenceReport } from './reference_functions.ts';

describe('the function table', () => {
  it('has most functions that the reference product documents', () => {
    expect(referenceReport()).toMatch(/^All: (5\d\d|6\d\d) supported/m);
  });

  it('contains each name once, ignoring case', () => {
    const names = functionDefinitions.map(({ name }) => name.toLowerCase());
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it.each(functionDefinitions)(
    '$name is complete',
    ({ name, argumentTypes, parameterTypes, description, template, unsupported }) => {
      expect(description).toMatch(/[.]$/);
      const calls = Object.keys(functionCases[name] ?? {});
      expect(unsupported === null && calls.length === 0).toBe(false);
      for (const call of calls) expect(call).toMatch(new RegExp(`\\b${name}[A-Za-z]*\\(`));
      for (const list of [argumentTypes, parameterTypes]) {
        const shapes = list.map((argumentType) =>
          argumentType.endsWith('...') ? 2 : argumentType.endsWith('?') ? 1 : 0,
        );
        expect(shapes).toEqual(shapes.toSorted());
        expect(shapes.filter((shape) => shape === 2).length).toBeLessThanOrEqual(1);
      }
      const indexes = [...(template ?? '').matchAll(/\$(\d+)/g)].map(([, index]) => Number(index));
      for (const index of indexes) expect(index).toBeLessThanOrEqual(argumentTypes.length);
      expect(arityOf(argumentTypes).min).toBeGreaterThanOrEqual(new Set(indexes).size);
    },
  );

  it('has no cases of functions that are not in the table', () => {
    const names = new Set(functionDefinitions.map(({ name }) => name));
    expect(Object.keys(functionCases).filter((name) => !names.has(name))).toEqual([]);
  });

  it('computes the arity of a signature', () => {
    expect(arityOf([])).toEqual({ min: 0, max: 0 });
    expect(arityOf(['string', 'integer?'])).toEqual({ min: 1, max: 2 });
    expect(arityOf(['string', 'any...'])).toEqual({ min: 1, max: Infinity });
  });
});

describe('findFunction', () => {
  it('ignores case for standard SQL functions only', () => {
    expect(findFunction('COUNT')?.definition.name).toBe('count');
    expect(findFunction('IfNull')?.definition.name).toBe('ifNull');
    expect(findFunction('todate')).toBeUndefined();
    expect(findFunction('substr')?.definition.name).toBe('substring');
  });

  it('accepts If after aggregates only', () => {
    expect(findFunction('sumIf')).toMatchObject({ definition: { name: 'sum' }, combinators: ['If'] });
    expect(findFunction('multiIf')).toMatchObject({ definition: { name: 'multiIf' }, combinators: [] });
    expect(findFunction('lowerIf')).toBeUndefined();
  });

  it('accepts several combinators, each once', () => {
    expect(findFunction('avgOrNullIf')).toMatchObject({
      definition: { name: 'avg' },
      combinators: ['OrNull', 'If'],
    });
    expect(findFunction('sumDistinct')).toMatchObject({
      definition: { name: 'sum' },
      combinators: ['Distinct'],
    });
    expect(findFunction('groupUniqArray')?.combinators).toEqual([]);
    expect(findFunction('sumIfIf')).toBeUndefined();
    expect(findFunction('sumState')).toBeUndefined();
  });

  it.each([
    'uniqState',
    'sumMerge',
    'avgMergeIf',
    'sumIfState',
    'sumSimpleState',
    'sumResample',
    'groupBitmapIf',
    'h3ToGeo',
    'geoToH3',
    'medianTDigestIf',
    'tuplePlus',
    'cosineDistance',
    'hop',
  ])('suggests an alternative to %s', (name) => {
    expect(unsupportedHint(name)).toMatch(/[.]$/);
  });

  it.each([
    'pg_sleep',
    'sleep',
    'file',
    'url',
    'remote',
    'currentUser',
    'pg_read_file',
    '__proto__',
    'constructor',
  ])('does not find %s', (name) => {
    expect(findFunction(name)).toBeUndefined();
  });

  it.each([
    ['toDat', 'toDate'],
    ['todate', 'toDate'],
    ['cuont', 'count'],
    ['arrayMpa', 'arrayMap'],
    ['startWith', 'startsWith'],
  ])('suggests a name for %s', (name, near) => {
    expect(suggestFunction(name)).toBe(`Perhaps you meant '${near}(...)'?`);
  });

  it('suggests nothing if no name is close', () => {
    expect(suggestFunction('pg_sleep_for_a_long_time')).toBeNull();
    expect(suggestFunction('x'.repeat(10_000))).toBeNull();
  });
});
