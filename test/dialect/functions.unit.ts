import { describe, expect, it } from '@jest/globals';
import { arityOf } from '../../src/dialect/functions/definition.ts';
import {
  findFunction,
  functionDefinitions,
  unsupportedCombinatorHint,
  suggestFunction,
} from '../../src/dialect/functions/registry.ts';
import { listedFunctions } from './listed_functions.ts';

describe('the table of functions', () => {
  it('has every function of the reference', () => {
    expect(listedFunctions.filter((name) => findFunction(name) === undefined)).toEqual([]);
    expect(functionDefinitions.length).toBeGreaterThanOrEqual(300);
  });

  it('has each name once, whatever its case', () => {
    const names = functionDefinitions.map(({ name }) => name.toLowerCase());
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it.each(functionDefinitions)(
    '$name is stated in full',
    ({ argumentTypes: parameters, parameterTypes: settings, description, template: compile }) => {
      expect(description).toMatch(/[.]$/);
      for (const list of [parameters, settings]) {
        const shapes = list.map((parameter) =>
          parameter.endsWith('...') ? 2 : parameter.endsWith('?') ? 1 : 0,
        );
        expect(shapes).toEqual(shapes.toSorted());
        expect(shapes.filter((shape) => shape === 2).length).toBeLessThanOrEqual(1);
      }
      const places = [...(compile ?? '').matchAll(/\$(\d+)/g)].map(([, place]) => Number(place));
      for (const place of places) expect(place).toBeLessThanOrEqual(parameters.length);
      expect(arityOf(parameters).min).toBeGreaterThanOrEqual(new Set(places).size);
    },
  );

  it('knows how many arguments a function takes', () => {
    expect(arityOf([])).toEqual({ min: 0, max: 0 });
    expect(arityOf(['string', 'integer?'])).toEqual({ min: 1, max: 2 });
    expect(arityOf(['string', 'any...'])).toEqual({ min: 1, max: Infinity });
  });
});

describe('finding a function', () => {
  it('takes names of standard SQL in any case, the others as they are written', () => {
    expect(findFunction('COUNT')?.definition.name).toBe('count');
    expect(findFunction('IfNull')?.definition.name).toBe('ifNull');
    expect(findFunction('todate')).toBeUndefined();
    expect(findFunction('substr')?.definition.name).toBe('substring');
  });

  it('takes If behind an aggregate only', () => {
    expect(findFunction('sumIf')).toMatchObject({ definition: { name: 'sum' }, combinators: ['If'] });
    expect(findFunction('multiIf')).toMatchObject({ definition: { name: 'multiIf' }, combinators: [] });
    expect(findFunction('lowerIf')).toBeUndefined();
  });

  it('takes several combinators, each once', () => {
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

  it.each(['sumForEach', 'uniqState', 'sumMerge', 'avgMergeIf', 'maxArgMax', 'countMap', 'sumIfState'])(
    'says what to write instead of %s',
    (name) => {
      expect(unsupportedCombinatorHint(name)).toMatch(/[.]$/);
    },
  );

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
  ])('does not know %s', (name) => {
    expect(findFunction(name)).toBeUndefined();
  });

  it.each([
    ['toDat', 'toDate'],
    ['todate', 'toDate'],
    ['cuont', 'count'],
    ['arrayMpa', 'arrayMap'],
    ['startWith', 'startsWith'],
  ])('suggests for %s', (name, near) => {
    expect(suggestFunction(name)).toBe(`Perhaps you meant '${near}(...)'?`);
  });

  it('suggests nothing for what is like nothing', () => {
    expect(suggestFunction('pg_sleep_for_a_long_time')).toBeNull();
    expect(suggestFunction('x'.repeat(10_000))).toBeNull();
  });
});
