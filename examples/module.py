"""A module for Gatehouse in Python 3, standard library only: two endpoints for tools, and an event for each new order.
  MODULE_KEY=example-key-0123456789 python3 examples/module.py
  npm start -- --config examples/gatehouse.jsonc
"""
import json, os, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit
from urllib.request import Request, urlopen

PORT = int(os.environ.get('PORT', '9001'))
GATEWAY = os.environ.get('GATEWAY', 'http://127.0.0.1:8081')
orders = []

def push(order):
    """Tells the account about an order, as a browser event and a webhook. Sending it again does no harm."""
    event = {'module': 'core', 'tick': str(time.time_ns() // 1_000_000), 'type': 'OrderCreated',
             'crmId': order['userId'], 'data': order}
    headers = {'X-Module-Key': os.environ.get('MODULE_KEY', '')}
    urlopen(Request(f'{GATEWAY}/internal/v1/events', json.dumps({'events': [event]}).encode(), headers), timeout=5)

def find(caller, item=''):
    return {'orders': [order for order in orders if order['userId'] == caller['userId'] and item in order['item']]}

def create(caller, item, amount):
    order = {'id': str(len(orders) + 1), 'userId': caller['userId'], 'item': item, 'amount': amount,
             'by': caller['scopes']}
    orders.append(order)
    push(order)
    return order

ENDPOINTS = {'GET /core/v1/orders/find': find, 'POST /core/v1/orders/create': create}

class Module(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        values = json.loads(body) if body else dict(parse_qsl(url.query))
        # The gateway sets these headers and removes a client's own. So only the gateway may reach this port.
        caller = {'userId': self.headers.get('X-Crm'), 'scopes': self.headers.get('X-Scopes')}
        endpoint = ENDPOINTS.get(f'{self.command} {url.path}')
        status, answer = 404, {'error': {'code': 3001, 'message': 'Not found'}}
        if endpoint and not caller['userId']:
            status, answer = 401, {'error': {'code': 3002, 'message': 'No user'}}
        elif endpoint:
            status, answer = 200, {'result': endpoint(caller, **values)}
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

server = ThreadingHTTPServer(('127.0.0.1', PORT), Module)
print(f'module at http://127.0.0.1:{PORT}', flush=True)
server.serve_forever()
