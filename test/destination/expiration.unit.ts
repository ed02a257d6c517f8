import { describe, expect, it } from '@jest/globals';
import { parseExpiration } from '../../src/destination/objects.ts';

describe('the expiration of an object', () => {
  it.each([
    ['expiry-date="Fri, 21 Dec 2029 00:00:00 GMT", rule-id="logs, old"', '2029-12-21T00:00:00.000Z'],
    ['rule-id="a", expiry-date="Sat, 01 Jan 2028 00:00:00 GMT"', '2028-01-01T00:00:00.000Z'],
    ['expiry-date="soon", rule-id="a"', null],
    ['', null],
    [undefined, null],
  ])('is read from %j', (header, time) => {
    expect(parseExpiration(header)).toBe(time);
  });
});
