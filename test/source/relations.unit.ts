import { describe, expect, it } from '@jest/globals';
import { InvalidRelationName, quoteRelation } from '../../src/source/relations.ts';

describe('quoteRelation', () => {
  it.each([
    ['events', '"events"'],
    ['public.Events', '"public"."events"'],
    ['"My ""own"" schema"."Ev.ents"', '"My ""own"" schema"."Ev.ents"'],
  ])('%s becomes %s', (name, quoted) => {
    expect(quoteRelation(name)).toBe(quoted);
  });

  it.each(['', '.', 'a.b.c', 'events; drop table events', 'events e', '"open', 'e"vents', '1events', '""'])(
    '%j is rejected',
    (name) => {
      expect(() => quoteRelation(name)).toThrow(InvalidRelationName);
    },
  );
});
