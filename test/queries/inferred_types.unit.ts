import { describe, expect, it } from '@jest/globals';
import type { Property } from '@exportd/dialect/types';
import { type InferredType, noticeOfTypes, withInferredTypes } from '../../src/queries/inferred_types.ts';
import { typeOfValues } from '../../src/queries/sample_properties.ts';

const counts = (more: Partial<Parameters<typeof typeOfValues>[0]>) => ({
  values: 100,
  numbers: 0,
  convertedNumbers: 0,
  booleans: 0,
  convertedBooleans: 0,
  times: 0,
  ...more,
});

describe('the type of values', () => {
  it.each([
    ['numbers', counts({ numbers: 100, convertedNumbers: 100 }), 'numeric', 100],
    ['numbers and texts of numbers', counts({ numbers: 60, convertedNumbers: 95 }), 'numeric', 95],
    ['booleans, some as 0 and 1', counts({ booleans: 80, convertedBooleans: 90 }), 'boolean', 90],
    ['times', counts({ times: 90 }), 'datetime', 90],
  ])('is that of most: %s', (_, given, type, matching_values) => {
    expect(typeOfValues(given)).toEqual({ type, matching_values });
  });

  it.each([
    ['texts of numbers', counts({ numbers: 40, convertedNumbers: 100 })],
    ['too many others', counts({ numbers: 89, convertedNumbers: 89 })],
    ['0 and 1', counts({ convertedBooleans: 100 })],
    ['texts', counts({})],
  ])('is text otherwise: %s', (_, given) => {
    expect(typeOfValues(given)).toBeNull();
  });
});

const property = (name: string): Property => ({ scope: 'event', name });
const numeric = (name: string): InferredType => ({
  ...property(name),
  type: 'numeric',
  sampled_values: 10,
  matching_values: 9,
});

describe('a request', () => {
  it('is answered again until it needs no more types, each of which is inferred once', async () => {
    const asked: string[][] = [];
    const answers: string[] = [];
    const { result, types } = await withInferredTypes(
      (properties) => {
        asked.push(properties.map(({ name }) => name));
        return Promise.resolve(
          properties.filter(({ name }) => name !== 'text').map(({ name }) => numeric(name)),
        );
      },
      (inference) => {
        const needed = inference.typeOf(property('a')) === undefined ? ['a', 'text'] : ['b', 'text'];
        return Promise.resolve(
          inference.compile(() => {
            answers.push(needed.join());
            const open = needed.filter((name) => inference.typeOf(property(name)) === undefined);
            return open.map((name) => inference.request(property(name)));
          }),
        );
      },
    );
    expect(asked).toEqual([['a', 'text'], ['b']]);
    expect(answers).toEqual(['a,text', 'b,text', 'b,text']);
    expect(result).toEqual([false]);
    expect(types).toEqual([numeric('a'), numeric('b')]);
  });

  it('fails with its own error, unless it needs types', async () => {
    const failing = (name: string | null) =>
      withInferredTypes(
        (properties) => Promise.resolve(properties.map((one) => numeric(one.name))),
        (inference) =>
          Promise.resolve(
            inference.compile(() => {
              const isKnown = name === null || inference.typeOf(property(name)) !== undefined;
              if (!isKnown && inference.request(property(name))) throw new Error('of a placeholder');
              throw new Error(`with ${name}`);
            }),
          ),
      );
    await expect(failing(null)).rejects.toThrow('with null');
    await expect(failing('a')).rejects.toThrow('with a');
  });

  it('infers the types of at most 100 properties', async () => {
    let asked = 0;
    await withInferredTypes(
      (properties) => {
        asked += properties.length;
        return Promise.resolve([]);
      },
      (inference) =>
        Promise.resolve(
          inference.compile(() =>
            Array.from({ length: 150 }, (_, index) => inference.request(property(String(index)))),
          ),
        ),
    );
    expect(asked).toBe(100);
  });
});

it('a notice names each inferred type', () => {
  expect(noticeOfTypes([])).toBeNull();
  expect(noticeOfTypes([{ ...numeric('a'), sampled_values: null, matching_values: null }])).toBeNull();
  expect(noticeOfTypes([numeric('a'), { ...numeric('b'), scope: 'person', type: 'datetime' }])).toBe(
    'properties.a is read as a number, as 9 of 10 values are. person.properties.b is read as a time, as 9 of 10 values are. "exportd property define" sets another type.',
  );
});
