import { expect, it } from '@jest/globals';
import { outputParts } from '../../src/queries/results.ts';

it.each(['', '{}', 'x'.repeat(2 ** 20), 'ä€😀'.repeat(400_000), `x${'😀'.repeat(600_000)}`])(
  'parts are text each, and together the output',
  (text) => {
    const parts = outputParts(new TextEncoder().encode(text));
    const texts = parts.map((part) => new TextDecoder('utf-8', { fatal: true }).decode(part));
    expect(texts.join('') === text).toBe(true);
    expect(parts.every((part) => part.byteLength <= 2 ** 20)).toBe(true);
  },
);
