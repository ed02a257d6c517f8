import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  ExactNumber,
  exactNumber,
  parseJson,
  roundedInteger,
  stringifyJson,
} from '../../src/client/exact_numbers.ts';

describe('JSON', () => {
  it.each([
    ['an integer above 2^53', '9007199254740993'],
    ['a negative one', '-9007199254740993'],
    ['one of 64 bits', '[18446744073709551615,-9223372036854775808]'],
    ['a long decimal', '{"a":0.12345678901234567890123}'],
    ['a number that is too large', '[1e400,{"deep":[123456789012345678901234567890]}]'],
    ['a number beside strings with digits', '["9007199254740993",9007199254740993,"\\"9007199254740993"]'],
    [
      'a number named as a prototype',
      '{"__proto__":9007199254740993,"a":{"__proto__":{"b":9007199254740993}}}',
    ],
    ['the same number as a key', '{"9007199254740993":9007199254740993}'],
  ])('keeps %s', (_, text) => {
    expect(stringifyJson(parseJson(text))).toBe(text);
  });

  it.each(['9007199254740991', '1.5', '0.30000000000000004', '100000000000000000000', '-0.0', '1.50', '1e3'])(
    'has %s as a number of JavaScript',
    (text) => {
      expect([typeof exactNumber(text), parseJson(`[${text}]`)]).toEqual(['number', [Number(text)]]);
    },
  );

  it('with any value is read and written as by JSON', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), (text) => {
        expect(stringifyJson(parseJson(text))).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  it('with any digits keeps all of them', () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.string(), (integer, name) => {
        const text = `{${JSON.stringify(`k${name}`)}:[${integer},${JSON.stringify(name)},${integer}]}`;
        const back = JSON.stringify(
          JSON.parse(stringifyJson(parseJson(text)).replaceAll(String(integer), '0')),
        );
        expect(back).toBe(JSON.stringify(JSON.parse(text.replaceAll(String(integer), '0'))));
        expect(String(exactNumber(String(integer)).valueOf())).toBe(String(Number(integer)));
      }),
    );
  });

  it('is told whether it has an integer that would be rounded', () => {
    expect(
      [
        '1',
        '"9007199254740993"',
        '[9007199254740992, 1e400, 0.12345678901234567890]',
        '{"a":-9007199254740993}',
      ].map(roundedInteger),
    ).toEqual([undefined, undefined, undefined, '-9007199254740993']);
  });

  it('that another writes has an exact number as a string', () => {
    const number = parseJson('9007199254740993');
    expect(number).toBeInstanceOf(ExactNumber);
    expect([JSON.stringify([number]), String(number), Number(number)]).toEqual([
      '["9007199254740993"]',
      '9007199254740993',
      9007199254740992,
    ]);
  });
});
