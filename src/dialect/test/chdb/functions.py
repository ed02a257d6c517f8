"""Records in functions.json what ClickHouse (PyPI package chdb) returns for each case of functions/*.txt.

Run `python functions.py` in this folder after adding a case. Tests read the JSON and do not need chdb.
Functions with other names in ClickHouse are rewritten; time zone and settings are those of the reference product
(clickhouse_syntax.py). Lines of functions/*.txt are `name: arguments ; arguments`. `@` marks a whole expression, and
`@rows x, y: 1, 2 | 3, 4` in aggregates.txt declares rows. functions_manual.json holds the differences with their reasons.
"""
import json
import re
from pathlib import Path

from clickhouse_syntax import open_engine, rewritten, rows_of, settings, split_top, version_of

here = Path(__file__).parent
engine = open_engine()


def cases_of(path):
    rows = {}
    for line in path.read_text().splitlines():
        if not line.strip():
            continue
        if line.startswith('@'):
            head, _, values = line[1:].partition(': ')
            name, _, columns = head.partition(' ')
            values, _, where = values.partition(' where ')
            rows[name] = (split_top(columns), [split_top(row) for row in split_top(values, '|')], where)
            continue
        name, _, rest = line.partition(':')
        for part in split_top(rest, ' ; '):
            if rows:
                source, _, call = part.partition(' ')
                columns, values, where = rows[source]
                branches = ' union all '.join(
                    'select ' + ', '.join(f'{value} as {column}' for column, value in zip(columns, row)) for row in values
                )
                filtered = f' where {where}' if where else ''
                yield name, f'select {call} from ({branches}) as given{filtered}'
            elif part.startswith('@') and ' over ' in part:
                call, _, source = part[1:].partition(' over ')
                yield name, f'select {call} from (select {source}) as given'
            elif part.startswith('@'):
                yield name, f'select {part[1:]}'
            else:
                yield name, f'select {name}({part})'


def answer(statement):
    given = rows_of(engine, statement)
    return given if 'error' in given else {'type': given['types'][0], 'value': given['rows'][0][0]}


recorded = []
for path in sorted((here / 'functions').glob('*.txt')):
    for name, statement in cases_of(path):
        asked = re.sub(r'(windowFunnel\(\d+\)\()y,', r'\1toDateTime(assumeNotNull(y)),', rewritten(statement))
        recorded.append({'function': name, 'query': statement, 'asked': asked, **answer(asked)})

lines = ',\n'.join(json.dumps(one, ensure_ascii=False) for one in recorded)
head = json.dumps({'clickhouse': version_of(engine), 'settings': settings})[:-1]
(here / 'functions.json').write_text(f'{head}, "cases": [\n{lines}\n]}}\n')
print(len(recorded), 'cases,', sum('error' in one for one in recorded), 'rejected by ClickHouse')
for one in recorded:
    if 'error' in one:
        print(one['query'], '=>', one['asked'], '::', one['error'][:110])
