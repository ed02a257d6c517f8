import { describe, expect, it } from '@jest/globals';
import { childrenOf, type Field, findNodes, type Node, transform, walk } from '../ast.ts';
import { parseExpression, parseQuery } from '../parser/queries.ts';
import { printExpression, printQuery } from '../print.ts';

const isField = (node: Node): node is Field => node.kind === 'field';
const pathOf = (field: Field): string => field.path.map(({ text }) => text).join('.');

describe('the tree walk', () => {
  it('visits every node once, in source order, with its parents', () => {
    const visited: string[] = [];
    walk(parseExpression('f(x -> b.c, a) + (SELECT d FROM t)'), {
      enter: (node, parents) => {
        visited.push(`${'  '.repeat(parents.length)}${node.kind}`);
        return true;
      },
    });
    expect(visited).toEqual([
      'arithmetic',
      '  call',
      '    name',
      '    lambda',
      '      name',
      '      field',
      '        name',
      '        name',
      '    field',
      '      name',
      '  subquery',
      '    select',
      '      field',
      '        name',
      '      table',
      '        name',
    ]);
  });

  it('skips children on request, and leaves nodes after their children', () => {
    const left: string[] = [];
    walk(parseExpression('a + (SELECT b)'), {
      enter: (node) => node.kind !== 'subquery',
      leave: (node) => left.push(node.kind),
    });
    expect(left).toEqual(['name', 'field', 'subquery', 'arithmetic']);
  });

  it('finds nodes of a kind', () => {
    const query = parseQuery(
      'WITH c AS (SELECT a) SELECT b, f(c.d) OVER (ORDER BY e) FROM t JOIN u ON g ORDER BY h LIMIT 1 BY i',
    );
    expect(findNodes(query, isField).map(pathOf)).toEqual(['a', 'b', 'c.d', 'e', 'g', 'h', 'i']);
  });

  it('spans every node', () => {
    const text = "SELECT f(a.b) AS x, CASE WHEN c THEN 'd' END\nFROM t AS u -- end\n";
    const spans: Record<string, string[]> = {};
    walk(parseQuery(text), {
      enter: ({ kind, start, end }) => {
        (spans[kind] ??= []).push(text.slice(start, end));
        return true;
      },
    });
    expect(spans).toEqual({
      select: ["SELECT f(a.b) AS x, CASE WHEN c THEN 'd' END\nFROM t AS u"],
      alias: ['f(a.b) AS x'],
      call: ['f(a.b)'],
      name: ['f', 'a', 'b', 'x', 'c', 't', 'u'],
      field: ['a.b', 'c'],
      case: ["CASE WHEN c THEN 'd' END"],
      branch: ["WHEN c THEN 'd'"],
      string: ["'d'"],
      table: ['t AS u'],
    });
  });

  it('replaces nodes and keeps the others', () => {
    const tree = parseExpression('a = {name} AND b IN (1, {name})');
    const changed = transform(tree, (node) =>
      node.kind === 'placeholder' ? { kind: 'string', value: 'x', start: node.start, end: node.end } : node,
    );
    if (changed.kind !== 'logical') throw new Error('The kind of the root has changed.');
    expect(printExpression(changed)).toBe("a = 'x' AND b IN (1, 'x')");
    expect(printExpression(tree)).toBe('a = {name} AND b IN (1, {name})');
    expect(transform(tree, (node) => node)).toBe(tree);
  });

  it('returns direct children', () => {
    const query = parseQuery('SELECT a, b FROM t WHERE c');
    expect(childrenOf(query).map(({ kind }) => kind)).toEqual(['field', 'field', 'table', 'field']);
    expect(printQuery(query)).toBe('SELECT a, b FROM t WHERE c');
  });
});
