import type { SourceRelation } from '../../schema.ts';
import { bind, commaList, identifier, joinSql, replaceFragments, sql, type Sql } from '../../sql.ts';
import { type PropertyScope, scalarType } from '../../types.ts';
import {
  column,
  type LookupTarget,
  type PageTarget,
  type SearchTarget,
  type PushdownTarget,
  type Relation,
  type RelationField,
  type RelationFields,
  TeamRelation,
} from '../relation.ts';
import type { Statement } from '../statement.ts';
import { elementColumn, elementColumns } from './elements.ts';
import {
  type FieldDefinitions,
  fieldOf,
  LazyJoins,
  propertyColumns,
  starFieldsOf,
  MergedPersonEvents,
  nestedPerson,
  PersonsRelation,
} from './persons.ts';
import { SessionsRelation } from './sessions.ts';

const groupTypeFields: FieldDefinitions = {
  index: { column: 'group_type_index', kind: 'integer' },
  key: { column: 'group_key', kind: 'string' },
  created_at: { column: 'created_at', kind: 'datetime' },
  updated_at: { column: 'updated_at', kind: 'datetime' },
  properties: { column: 'group_properties', kind: 'json' },
  team_id: { column: 'team_id', kind: 'integer', hidden: true },
};

/**
 * The groups of a project, of all five types or of one. The relation's key (team, type, key) guarantees one row
 * each.
 */
export class GroupsRelation implements Relation {
  readonly name: string | null;
  readonly #relation: TeamRelation;
  readonly #joined: GroupScope | null;

  /** @param joined the group type that is joined to rows, which may have no such group; null for all types */
  constructor(
    statement: Statement,
    source: SourceRelation,
    name: string | null,
    joined: GroupScope | null = null,
  ) {
    this.name = name;
    this.#joined = joined;
    this.#relation = new TeamRelation(statement, source, name ?? 'groups', {
      teamColumn: 'team_id',
      conditions: [
        joined === null ? null : sql`group_type_index = ${bind(joined.slice('group_'.length), 'int4')}`,
      ],
    });
  }

  readonly field: Relation['field'] = (name) => {
    const field = fieldOf(this.#relation, groupTypeFields, name, this.#joined ?? undefined);
    return this.#joined !== null && field?.kind === 'column'
      ? { ...field, type: { ...field.type, nullable: true } }
      : field;
  };

  readonly names = (): readonly string[] => Object.keys(groupTypeFields);
  readonly star = (): readonly string[] => starFieldsOf(groupTypeFields);
  readonly from = (): Sql => this.#relation.from();

  get key(): Sql {
    return this.#relation.column('group_key');
  }
}

const eventFields: FieldDefinitions = {
  uuid: { column: 'uuid', kind: 'uuid' },
  event: { column: 'event', kind: 'string' },
  properties: { column: 'properties', kind: 'json' },
  timestamp: { column: 'timestamp', kind: 'datetime' },
  distinct_id: { column: 'distinct_id', kind: 'string' },
  elements_chain: { column: 'elements_chain', kind: 'string' },
  created_at: { column: 'created_at', kind: 'datetime' },
  person_id: { column: 'person_id', kind: 'uuid', nullable: true },
  team_id: { column: 'team_id', kind: 'integer', hidden: true },
  inserted_at: { column: 'inserted_at', kind: 'datetime', hidden: true },
};

/** Event columns that restrict the sessions of a query, besides the timestamp. */
const pushdownColumns = ['event', 'distinct_id'];

type GroupScope = Exclude<PropertyScope, 'event' | 'person'>;

const groupFields: readonly GroupScope[] = ['group_0', 'group_1', 'group_2', 'group_3', 'group_4'];

/** Events with their person, session and groups. */
export class EventsRelation implements Relation {
  readonly isEvents = true;
  readonly name: string | null;
  readonly #statement: Statement;
  readonly #relation: MergedPersonEvents;
  readonly #joins = new LazyJoins();
  /** The columns that it reads from events alone. */
  readonly #own = new Set<Sql>();
  /** The columns with the properties of the person, and what they are where the event has none of its own. */
  readonly #personProperties = new Map<Sql, Sql>();
  #sessions: SessionsRelation | null = null;

  /** @param sample the condition of SAMPLE */
  constructor(statement: Statement, name: string | null, sample: Sql | null) {
    this.name = name;
    this.#statement = statement;
    const events = new TeamRelation(statement, statement.project.schema.events, name ?? 'events', {
      teamColumn: 'team_id',
      conditions: [sample],
    });
    this.#relation = new MergedPersonEvents(statement, events);
  }

  readonly field: Relation['field'] = (name) => {
    if (propertyColumns.has(name))
      return this.#ownField({
        ...column(this.#relation.property(name), scalarType('string')),
        stored: () => this.#property(name),
      });
    if (name === 'person') return this.#person();
    if (name === 'poe') return this.#personOnEvent();
    if (name === 'session') return { kind: 'nested', fields: this.#session() };
    if (name === 'pdi') return { kind: 'nested', fields: this.#mapping };
    const group = groupFields.find((one) => one === name);
    if (group !== undefined) return this.#group(group);
    const ofElements = elementColumn(name, () => this.#relation.column('elements_chain'));
    if (ofElements !== undefined) return ofElements;
    const field = fieldOf(this.#relation, eventFields, name, 'event');
    return name === 'person_id' ? field : this.#ownField(field);
  };

  #ownField(field: RelationField | undefined): RelationField | undefined {
    if (field?.kind === 'column') this.#own.add(field.sql);
    return field;
  }

  readonly names = (): readonly string[] => [
    ...Object.keys(eventFields),
    ...elementColumns,
    ...propertyColumns,
    'person',
    'session',
    'pdi',
    'poe',
    ...(this.#statement.project.schema.groups === null ? [] : groupFields),
  ];
  readonly star = (): readonly string[] => starFieldsOf(eventFields);
  readonly from = (): Sql => this.#joins.joinTo(this.#relation.from());

  readonly lookupTargets = (): readonly LookupTarget[] => {
    const person = this.#relation.selectedPerson;
    const restrictTo: LookupTarget['restrictTo'] = (ids) => {
      this.#relation.restrictToPersons(sql`array[${commaList(ids)}]`);
    };
    return person === null ? [] : [{ column: person, restrictTo }];
  };

  /** Persons by their current properties, which are those of events without properties of the person. */
  readonly searchTargets = (): readonly SearchTarget[] => {
    const properties = this.#personProperties;
    if (properties.size === 0) return [];
    const persons = this.#persons();
    const carryPerson = this.#statement.project.schema.events.columns.has('person_properties');
    const search: SearchTarget['search'] = (conditions) => {
      const ofPerson = conditions.map((one) => replaceFragments(one, (fragment) => properties.get(fragment)));
      const where = sql` where ${joinSql(ofPerson, ' and ')}`;
      const found = sql`select ${persons.id} from ${persons.from()}${where}`;
      return sql`${found} union all select null from (select) as nothing left join ${persons.from()} on false${where}`;
    };
    const restrictTo: SearchTarget['restrictTo'] = (ids) => {
      this.#relation.restrictToPersons(bind(`{${ids.join(',')}}`, 'uuid[]'), carryPerson);
    };
    return [{ columns: new Set(properties.keys()), search, restrictTo }];
  };

  /** Restricts the sessions to those of the query's own events. */
  readonly pushdownTargets = (): readonly PushdownTarget[] => {
    const sessions = this.#sessions;
    if (sessions === null) return [];
    const { alias } = this.#relation;
    return [
      {
        column: this.#relation.reference('timestamp'),
        otherColumns: pushdownColumns.map((name) => this.#relation.reference(name)),
        pushDown: (conditions) =>
          sessions.pushDown(alias, ['timestamp', ...pushdownColumns].map(identifier), conditions),
      },
    ];
  };

  readonly pageTarget = (): PageTarget | null => {
    const relation = this.#relation;
    if (relation.isStored && this.#joins.isEmpty) return null;
    const limitTo: PageTarget['limitTo'] = (clauses) => {
      const page = relation.limitTo(clauses);
      this.#sessions?.keepOnly(
        sql`select ${this.#property('$session_id')} from ${page} as ${relation.alias}`,
      );
    };
    return { columns: this.#own, limitTo };
  };

  #property(name: string): Sql {
    return sql`(${this.#relation.column('properties')} ->> ${bind(name, 'text')})`;
  }

  /** The person, with the properties stored on the event if it has them, else the current ones. */
  #person(): RelationField {
    const current = nestedPerson(this.#relation.column('person_id'), () => this.#persons());
    const { schema } = this.#statement.project;
    const eventPropertiesType = schema.events.columns.get('person_properties');
    const propertiesOf = (stored: Sql): { readonly own: Sql; readonly stored: Sql } => {
      if (eventPropertiesType === undefined) return { own: stored, stored };
      const own = this.#relation.column('person_properties');
      return eventPropertiesType === schema.persons.columns.get('properties')
        ? { own: sql`coalesce(${own}, ${stored})`, stored }
        : { own: sql`coalesce(${own}::jsonb, ${stored}::jsonb)`, stored: sql`(${stored}::jsonb)` };
    };
    return {
      kind: 'nested',
      fields: {
        names: current.names,
        star: current.star,
        field: (name) => {
          const field = current.field(name);
          if (name !== 'properties' || field?.kind !== 'column') return field;
          const { own, stored } = propertiesOf(field.sql);
          this.#personProperties.set(own, stored);
          return { ...field, sql: own };
        },
      },
    };
  }

  #personOnEvent(): RelationField {
    const person = this.#person();
    if (person.kind !== 'nested') return person;
    const { field } = person.fields;
    const names = () => ['id', 'properties'];
    return { kind: 'nested', fields: { names, star: names, field } };
  }

  #persons(): PersonsRelation {
    const id = this.#relation.column('person_id');
    return this.#joins.getOrJoin('person', () => {
      const relation = new PersonsRelation(this.#statement, 'person');
      return { relation, condition: sql`${relation.id} = ${id}` };
    });
  }

  #session(): SessionsRelation {
    const id = this.#property('$session_id');
    return this.#joins.getOrJoin('session', () => {
      const relation = new SessionsRelation(this.#statement, 'session', { optional: true });
      this.#sessions = relation;
      return { relation, condition: sql`${relation.id} = ${id}` };
    });
  }

  /** The group whose key is the event's property of that name with a `$`. */
  #group(name: GroupScope): RelationField {
    const { groups } = this.#statement.project.schema;
    if (groups === null)
      return {
        kind: 'unsupported',
        summary: `The field ${name} of events is not supported: groups are not stored.`,
        suggestion: `Use the key of the group: $${name}.`,
      };
    const key = this.#property(`$${name}`);
    const group = this.#joins.getOrJoin(name, () => {
      const relation = new GroupsRelation(this.#statement, groups, name, name);
      return { relation, condition: sql`${relation.key} = ${key}` };
    });
    return { kind: 'nested', fields: group };
  }

  /** The mapping of the event's distinct id. Its person is the event's, also if the distinct id has no mapping. */
  readonly #mapping: RelationFields = {
    names: () => ['distinct_id', 'person_id', 'person'],
    star: () => ['distinct_id', 'person_id'],
    field: (name) => {
      if (name === 'distinct_id' || name === 'person_id') return this.field(name);
      if (name !== 'person') return undefined;
      const id = this.#relation.column('person_id');
      return { kind: 'nested', fields: nestedPerson(id, () => this.#persons()) };
    },
  };
}
