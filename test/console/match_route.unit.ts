import { describe, expect, it } from '@jest/globals';
import { matchRoute } from '../../src/console/router/routes.ts';

describe('matchRoute', () => {
  it.each<[string, string, Record<string, string> | undefined]>([
    ['/', '/', {}],
    ['/exports/:id', '/exports/1', { id: '1' }],
    ['/exports/:id', '/exports/1/', { id: '1' }],
    ['/exports/:id', '/exports', undefined],
    ['/exports/:id', '/exports/1/edit', undefined],
    ['/exports/:id/edit', '/exports/1/edit', { id: '1' }],
    [
      '/exports/:id/intervals/:start',
      '/exports/1/intervals/2026-11-22T20%3A00%3A00Z',
      { id: '1', start: '2026-11-22T20:00:00Z' },
    ],
    ['/exports/:id', '/exports/%E0%A4%A', undefined],
    ['/keys', '/keys/', {}],
  ])('matches %s against %s', (pattern, path, expected) => {
    expect(matchRoute(pattern, path)).toEqual(expected);
  });
});
