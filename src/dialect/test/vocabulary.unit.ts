import { describe, expect, it } from '@jest/globals';
import { compileQuery } from '../compile/compile_query.ts';
import { functionDefinitions } from '../functions/registry.ts';
import { describeFunctions, describeTables } from '../vocabulary.ts';
import { project } from './project.ts';

const tables = describeTables(project);

describe('the described tables', () => {
  it('are those that a query can read', () => {
    expect(tables.map(({ name }) => name)).toEqual([
      'events',
      'persons',
      'person_distinct_ids',
      'sessions',
      'session_replay_events',
      'groups',
      'cohort_people',
      'raw_person_distinct_ids',
      'raw_session_replay_events',
      'system.cohorts',
      'system.information_schema.tables',
      'system.information_schema.columns',
      'warehouse.orders',
      'plans',
    ]);
  });

  it('leave out what the source lacks or cannot be read', () => {
    const schema = {
      ...project.schema,
      groups: null,
      warehouse: new Map([['gone', { relation: '"public"."gone"', columns: new Map(), teamColumn: null }]]),
    };
    const names = describeTables({ ...project, schema }).map(({ name }) => name);
    expect(names).not.toContain('groups');
    expect(names).not.toContain('gone');
  });

  it.each(tables.map((table) => [table.name, table] as const))(
    'have fields of %s that compile',
    (name, table) => {
      expect(table.fields.length).toBeGreaterThan(1);
      for (const field of table.fields)
        expect(() => compileQuery(`select ${field.name} from ${name}`, project)).not.toThrow();
    },
  );

  it('have nested fields and types', () => {
    const [events] = tables;
    expect(events?.fields).toEqual(
      expect.arrayContaining([
        { name: 'timestamp', type: 'DateTime64(6)' },
        { name: 'person.properties', type: expect.stringContaining('JSON') },
        { name: 'pdi.person.created_at', type: 'Nullable(DateTime64(6))' },
        { name: 'session.$is_bounce', type: expect.stringContaining('Bool') },
      ]),
    );
  });
});

describe('the described functions', () => {
  it('are those that are supported, each with a signature', () => {
    const described = describeFunctions();
    const supported = functionDefinitions.filter(({ unsupported }) => unsupported === null);
    expect(described).toHaveLength(supported.length);
    for (const { signature, description } of described) {
      expect(signature).toMatch(/^(\(.*\))?\(.*\) → .+$/);
      expect(description).not.toBe('');
    }
    expect(described.find(({ name }) => name === 'quantile')?.signature).toBe('([float])(number) → float');
  });
});
