import * as z from 'zod';
import type { Expression } from '@exportd/dialect/ast';
import { buildExpression, combineConditions } from '@exportd/dialect/ast_builders';
import { type PropertyFilters, propertyFiltersSchema } from '../filters/schema.ts';
import { actionIdSchema, type ProjectAction } from './actions.ts';
import { QueryError } from './query_errors.ts';
import { filtersCondition } from './property_filters.ts';
import type { QueryProject } from './query_kind.ts';

/** Fields of nodes of all kinds. */
const sharedFields = {
  name: z.string().nullish(),
  custom_name: z.string().nullish(),
  properties: propertyFiltersSchema.nullish(),
  fixedProperties: propertyFiltersSchema.nullish(),
  response: z.unknown().optional(),
  version: z.number().nullish(),
};

/** Fields of an event series, without those of one query kind such as `math` of trends. */
export const eventsNodeFields = {
  kind: z.literal('EventsNode'),
  /** The event name; null for all events. */
  event: z.string().nullish(),
  ...sharedFields,
};

/** Fields of an action series. */
export const actionsNodeFields = { kind: z.literal('ActionsNode'), id: actionIdSchema, ...sharedFields };

/** Kinds of nodes that other installations have, with what to write instead. */
const otherNodes: Readonly<Record<string, string>> = {
  DataWarehouseNode: 'Series over warehouse tables are not supported. Use a DialectQuery.',
  GroupNode: 'GroupNode is not supported. Define an action with a step for each of its events.',
};

/** Parses a node that selects events: an EventsNode, which is also a node without a kind, or an ActionsNode. */
export const nodeSchema = <Events, Actions>(
  events: z.ZodType<Events>,
  actions: z.ZodType<Actions>,
): z.ZodType<Events | Actions> => {
  const schemas: Readonly<Record<string, z.ZodType<Events | Actions>>> = {
    EventsNode: events,
    ActionsNode: actions,
  };
  return z.looseObject({}).transform((node, context): Events | Actions => {
    const kind = node.kind ?? 'EventsNode';
    const schema = typeof kind === 'string' && Object.hasOwn(schemas, kind) ? schemas[kind] : undefined;
    if (schema === undefined) {
      const message = `Must be one of: ${Object.keys(schemas).join(', ')}.`;
      const reason = typeof kind === 'string' && Object.hasOwn(otherNodes, kind) ? otherNodes[kind] : null;
      context.addIssue({ code: 'custom', path: ['kind'], message: reason ?? message });
      return z.NEVER;
    }
    const parsed = schema.safeParse({ ...node, kind });
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues) context.addIssue({ ...issue });
    return z.NEVER;
  });
};

/** The fields of a series that select its events. */
type SeriesFilter = (
  | { readonly kind: 'EventsNode'; readonly event?: string | null | undefined }
  | { readonly kind: 'ActionsNode'; readonly id: number }
) & {
  readonly properties?: PropertyFilters | null | undefined;
  readonly fixedProperties?: PropertyFilters | null | undefined;
};

/**
 * The condition of a series on an event; null for all events.
 * @param attr path of the series, such as `query__series__0`
 * @throws QueryError for an action that the project does not have
 */
export function seriesCondition(
  node: SeriesFilter,
  attr: string,
  project: Pick<QueryProject, 'actions'>,
): Expression | null {
  const { properties, fixedProperties } = node;
  return combineConditions('and', [
    nodeCondition(node, attr, project),
    filtersCondition(properties, { scope: 'events', attr: `${attr}__properties` }),
    filtersCondition(fixedProperties, { scope: 'events', attr: `${attr}__fixedProperties` }),
  ]);
}

function nodeCondition(
  node: SeriesFilter,
  attr: string,
  project: Pick<QueryProject, 'actions'>,
): Expression | null {
  if (node.kind === 'ActionsNode') return matchesAction(findAction(project, node.id, `${attr}__id`));
  const { event } = node;
  return event === null || event === undefined
    ? null
    : buildExpression('event = {event}', { event: { value: event } });
}

/** The names of the events that a node can select; null if it selects events of any name. @throws QueryError */
export function eventNames(
  node: SeriesFilter,
  attr: string,
  project: Pick<QueryProject, 'actions'>,
): readonly string[] | null {
  const names =
    node.kind === 'ActionsNode'
      ? findAction(project, node.id, `${attr}__id`).steps.map(({ event }) => event ?? null)
      : [node.event ?? null];
  const known = names.filter((name) => name !== null);
  return known.length < names.length ? null : known;
}

/** An action of the project. @throws QueryError that names it, if the project has no such action */
export function findAction(
  { actions }: Pick<QueryProject, 'actions'>,
  id: number,
  attr: string,
): ProjectAction {
  const found = actions.find((action) => action.id === id);
  if (found) return found;
  throw new QueryError('invalid_input', `This project has no action ${id}.`, { attr });
}

/** The condition that an event matches an action. */
export const matchesAction = ({ id }: ProjectAction): Expression =>
  buildExpression('matchesAction({id})', { id: { value: id } });

/** The name of a series in results, without its `custom_name`: the project's name of an action. */
export function seriesName(
  node: SeriesFilter & { readonly name?: string | null | undefined },
  { actions }: Pick<QueryProject, 'actions'>,
): string {
  if (node.kind === 'ActionsNode')
    return actions.find(({ id }) => id === node.id)?.name ?? node.name ?? String(node.id);
  return node.name ?? node.event ?? 'All events';
}
