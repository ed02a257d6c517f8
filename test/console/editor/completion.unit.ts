import { describe, expect, it } from '@jest/globals';
import { completionsAt, type CompletionSource } from '../../../src/console/editor/completion.ts';
import { describeFunctions, describeTables } from '@exportd/dialect/vocabulary';
import { project } from '../../../src/dialect/test/project.ts';

const source: CompletionSource = {
  vocabulary: {
    tables: describeTables(project).map(({ name, fields }) => ({ name, fields: [...fields] })),
    functions: [...describeFunctions()],
    keywords: ['SELECT', 'FROM', 'JOIN', 'WHERE', 'GROUP', 'ON', 'AS'],
  },
  names: {
    events: ['$pageview', 'signed up'],
    event_properties: ['$browser', 'plan name'],
    person_properties: ['email'],
  },
};

/** The completions at the sign | of a text. */
function at(text: string, isAsked = false): { readonly replaced: string; readonly texts: readonly string[] } {
  const caret = text.indexOf('|');
  const query = text.replace('|', '');
  const { from, items } = completionsAt(query, caret, source, { isAsked });
  return { replaced: query.slice(from, caret), texts: items.map((item) => item.text) };
}

describe('completion', () => {
  it('offers fields of the tables that the query reads, before functions', () => {
    expect(at('select ev| from events').texts[0]).toBe('event');
    expect(at('select pri| from plans').texts[0]).toBe('price');
    expect(at('select pri| from events').texts).not.toContain('price');
  });

  it('offers functions with their signatures, and keywords', () => {
    expect(at('select uniqE|').texts).toContain('uniqExact(');
    expect(at('select 1 fro|').texts).toContain('FROM');
    const { items } = completionsAt('select lowe', 11, source);
    expect(items[0]).toMatchObject({
      text: 'lower(',
      kind: 'function',
      detail: expect.stringMatching(/^\(.*\) → string$/),
    });
  });

  it('offers tables after FROM and JOIN, also before a letter is typed', () => {
    expect(at('select 1 from |', true).texts).toEqual(
      expect.arrayContaining(['events', 'persons', 'sessions', 'warehouse.orders', 'plans']),
    );
    expect(at('select 1 from events e join per|').texts.slice(0, 2)).toEqual([
      'persons',
      'person_distinct_ids',
    ]);
    expect(at('select 1 from warehouse.|')).toMatchObject({ texts: ['warehouse.orders'] });
  });

  it('offers the fields below a path or an alias', () => {
    expect(at('select person.| from events', true).texts).toContain('properties');
    expect(at('select o.to| from warehouse.orders o')).toEqual({ replaced: 'to', texts: ['total'] });
    expect(at('select e.| from events as e', true).texts).toContain('event');
  });

  it('offers the properties of events and persons, quoted where they have to be', () => {
    expect(at('select properties.| from events', true).texts).toEqual(['$browser', '`plan name`']);
    expect(at('select e.properties.$b| from events e')).toEqual({ replaced: '$b', texts: ['$browser'] });
    expect(at('select person.properties.| from events', true).texts).toEqual(['email']);
    expect(at('select properties.| from persons', true).texts).toEqual(['email']);
  });

  it('offers the names of events in a string', () => {
    expect(at("select 1 from events where event = '$p|'")).toEqual({ replaced: '$p', texts: ['$pageview'] });
    expect(at("select 1 from events where event = 'sig|").texts).toEqual(['signed up']);
    expect(at("select 1 from events where event = '$pageview'|").texts).toEqual([]);
  });

  it('offers nothing in a comment, in a number, and before anything is typed', () => {
    for (const text of ['select 1 -- eve|', 'select 12|', 'select |', '|', 'select /* eve| */ 1'])
      expect(at(text).texts).toEqual([]);
  });

  it('does not offer what is typed already', () => {
    expect(at('select event| from events').texts).not.toContain('event');
  });
});
