import type { ProjectNamesResponse, VocabularyResponse } from '../../http/console/pages/schema.ts';
import { may } from '../api/client.ts';
import { type Resource, useResource } from '../api/resource.ts';
import { type DialectToken, dialectTokens } from './marked_text.ts';

/** Something that can replace the word before the caret. */
export interface Completion {
  readonly text: string;
  readonly kind: 'table' | 'field' | 'property' | 'event' | 'function' | 'keyword';
  /** A type, a signature or nothing. */
  readonly detail: string;
  /** One line of documentation. */
  readonly description?: string;
}

/** The completions at a caret, best first, and where the text that they replace begins. */
export interface Completions {
  readonly from: number;
  readonly items: readonly Completion[];
}

/** What is completed. Names of the project are read later than the rest. */
export interface CompletionSource {
  readonly vocabulary: VocabularyResponse;
  readonly names: ProjectNamesResponse | null;
}

const maxItems = 50;
const nothing: Completions = { from: 0, items: [] };

/** Completes the word, the path or the string before the caret. Without a word, `isAsked` says whether the user asked for it. */
export function completionsAt(
  text: string,
  caret: number,
  source: CompletionSource,
  { isAsked = false }: { readonly isAsked?: boolean } = {},
): Completions {
  const keywords = new Set(source.vocabulary.keywords);
  const tokens = dialectTokens(text, keywords);
  const current = tokens.find(({ start, end }) => start < caret && caret <= end);
  if (current?.look === 'comment' || current?.look === 'number') return nothing;
  if (current?.look === 'string') return eventsIn(text, current, caret, source);
  const [path = ''] = /[\p{L}\p{N}_$.]*$/u.exec(text.slice(0, caret)) ?? [];
  if (path === '' && !isAsked) return nothing;
  const from = caret - path.length;
  const before = precedingWord(text, tokens, from);
  if (before === 'FROM' || before === 'JOIN') return ranked(from, path, tablesOf(source));
  const dot = path.lastIndexOf('.');
  if (dot >= 0)
    return ranked(from + dot + 1, path.slice(dot + 1), fieldsBelow(text, tokens, path.slice(0, dot), source));
  return ranked(from, path, [
    ...fieldsOf(text, tokens, source),
    ...functionsOf(source),
    ...source.vocabulary.keywords.map((word) => ({ text: word, kind: 'keyword' as const, detail: '' })),
    ...tablesOf(source),
  ]);
}

/** Names of events, in a string. */
function eventsIn(
  text: string,
  { start, end }: DialectToken,
  caret: number,
  { names }: CompletionSource,
): Completions {
  const isClosed = end - start > 1 && text[end - 1] === "'" && caret === end;
  if (isClosed || names === null) return nothing;
  const typed = text.slice(start + 1, caret);
  return ranked(
    start + 1,
    typed,
    names.events.map((name) => ({ text: name.replaceAll("'", "\\'"), kind: 'event', detail: 'event' })),
  );
}

/** The word before an offset, in upper case. */
function precedingWord(text: string, tokens: readonly DialectToken[], offset: number): string {
  const before = tokens.findLast(({ end, look }) => end <= offset && look !== 'space' && look !== 'comment');
  return before ? text.slice(before.start, before.end).toUpperCase() : '';
}

const tablesOf = ({ vocabulary }: CompletionSource): readonly Completion[] =>
  vocabulary.tables.map(({ name, fields }) => ({
    text: name,
    kind: 'table',
    detail: `${fields.length} fields`,
  }));

const functionsOf = ({ vocabulary }: CompletionSource): readonly Completion[] =>
  vocabulary.functions.map(({ name, signature, description }) => ({
    text: `${name}(`,
    kind: 'function',
    detail: signature,
    description,
  }));

interface NamedTable {
  readonly table: string;
  readonly alias: string | null;
}

/** The tables after FROM and JOIN, with their aliases. */
function tablesIn(text: string, tokens: readonly DialectToken[]): readonly NamedTable[] {
  const words = tokens.filter(({ look }) => look !== 'space' && look !== 'comment');
  const wordAt = (index: number): string => {
    const token = words[index];
    return token ? text.slice(token.start, token.end) : '';
  };
  const isName = (index: number): boolean => words[index]?.look === 'name';
  return words.flatMap((_, index) => {
    if (!/^(from|join)$/i.test(wordAt(index)) || !isName(index + 1)) return [];
    let at = index + 1;
    let table = wordAt(at);
    while (wordAt(at + 1) === '.' && isName(at + 2)) {
      at += 2;
      table += `.${wordAt(at)}`;
    }
    if (/^as$/i.test(wordAt(at + 1))) at += 1;
    return [{ table, alias: isName(at + 1) ? wordAt(at + 1) : null }];
  });
}

/** The fields of the tables that the query reads; of events before it names any. */
function fieldsOf(
  text: string,
  tokens: readonly DialectToken[],
  { vocabulary }: CompletionSource,
): readonly Completion[] {
  const read = tablesIn(text, tokens).map(({ table }) => table);
  const wanted = read.length > 0 ? read : ['events'];
  const aliases = tablesIn(text, tokens).flatMap(({ table, alias }) =>
    alias === null ? [] : [{ text: alias, kind: 'table' as const, detail: table }],
  );
  const fields = vocabulary.tables
    .filter(({ name }) => wanted.includes(name))
    .flatMap((table) =>
      table.fields.map(({ name, type }) => ({ text: name, kind: 'field' as const, detail: type })),
    );
  return [...aliases, ...unique(fields)];
}

/** The fields below a path: `properties`, `person`, an alias or a table. */
function fieldsBelow(
  text: string,
  tokens: readonly DialectToken[],
  path: string,
  { vocabulary, names }: CompletionSource,
): readonly Completion[] {
  const named = tablesIn(text, tokens);
  const [first = '', ...rest] = path.split('.');
  const owner = named.find(({ table, alias }) => alias === first || table === first)?.table;
  const inner = owner === undefined ? path : rest.join('.');
  if (names !== null && inner.endsWith('properties')) {
    const isPerson = /(^|\.)person\.properties$/.test(inner) || (owner ?? named[0]?.table) === 'persons';
    return (isPerson ? names.person_properties : names.event_properties).map((key) => ({
      text: /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(key) ? key : `\`${key}\``,
      kind: 'property',
      detail: 'property',
    }));
  }
  const read = owner === undefined ? named.map(({ table }) => table) : [owner];
  const wanted = read.length > 0 ? read : ['events'];
  const prefix = inner === '' ? '' : `${inner}.`;
  return unique(
    vocabulary.tables
      .filter(({ name }) => wanted.includes(name))
      .flatMap(({ fields }) => fields)
      .filter(({ name }) => name.startsWith(prefix))
      .map(({ name, type }) => ({ text: name.slice(prefix.length), kind: 'field' as const, detail: type })),
  );
}

const unique = (items: readonly Completion[]): readonly Completion[] => [
  ...new Map(items.map((item) => [item.text, item])).values(),
];

/** Items that begin with what was typed, then those that contain it. An item that is typed already is no completion. */
function ranked(from: number, typed: string, items: readonly Completion[]): Completions {
  const wanted = typed.toLowerCase();
  const rank = ({ text }: Completion): number => {
    const name = text.toLowerCase();
    if (name === wanted) return -1;
    if (name.startsWith(wanted)) return 0;
    return wanted.length > 1 && name.includes(wanted) ? 1 : -1;
  };
  const found = [0, 1].flatMap((wantedRank) => items.filter((item) => rank(item) === wantedRank));
  return { from, items: found.slice(0, maxItems) };
}

/** Reads what editors of queries complete, once; never for keys that may not query. */
export function useCompletionSource(): VocabularyState {
  const mayQuery = may('query:read');
  const vocabulary = useResource<VocabularyResponse>(mayQuery ? 'console/query/vocabulary/' : null);
  // Reading the names scans rows: first what every query needs.
  const names = useResource<ProjectNamesResponse>(vocabulary.data ? 'console/query/names/' : null);
  return {
    source: vocabulary.data ? { vocabulary: vocabulary.data, names: names.data ?? null } : null,
    failure: vocabulary.failure,
    reload: vocabulary.reload,
  };
}

/** What editors complete; null until it is read. */
interface VocabularyState extends Pick<Resource<VocabularyResponse>, 'failure' | 'reload'> {
  readonly source: CompletionSource | null;
}
