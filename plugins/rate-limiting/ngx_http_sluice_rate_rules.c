
/*
 * The rules of rate limits that this worker has, which share the memory.
 *
 * A rule is there until the last pool goes that has compiled it: requests that
 * take long hold pools of several epochs, and are to shrink nobody's share.
 */


#include "ngx_http_sluice_rate_limiting.h"
#include "ngx_sluice_limits.h"


/* By the slot of its plugin. */

typedef struct {
    ngx_rbtree_node_t  node;
    ngx_uint_t         copies;             /* that pools have compiled */
} ngx_http_sluice_rate_rule_t;


static ngx_http_sluice_rate_rule_t *ngx_http_sluice_rate_rules_hold(
    uint32_t slot);
static void ngx_http_sluice_rate_rules_forget(void *data);
static void ngx_http_sluice_rate_rules_divide(void);


static ngx_rbtree_t       ngx_http_sluice_rate_rules;
static ngx_rbtree_node_t  ngx_http_sluice_rate_rules_sentinel;
static uint32_t           ngx_http_sluice_rate_rules_count;
static uint32_t           ngx_http_sluice_rate_rules_lines;


ngx_int_t
ngx_http_sluice_rate_rules_add(ngx_pool_t *pool, uint32_t slot)
{
    ngx_pool_cleanup_t           *cln;
    ngx_http_sluice_rate_rule_t  *rule;

    cln = ngx_pool_cleanup_add(pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    rule = ngx_http_sluice_rate_rules_hold(slot);
    if (rule == NULL) {
        return NGX_ERROR;
    }

    cln->data = rule;
    cln->handler = ngx_http_sluice_rate_rules_forget;

    return NGX_OK;
}


static ngx_http_sluice_rate_rule_t *
ngx_http_sluice_rate_rules_hold(uint32_t slot)
{
    ngx_rbtree_node_t            *node;
    ngx_http_sluice_rate_rule_t  *rule;

    if (ngx_http_sluice_rate_rules.root == NULL) {
        ngx_rbtree_init(&ngx_http_sluice_rate_rules,
                        &ngx_http_sluice_rate_rules_sentinel,
                        ngx_rbtree_insert_value);
    }

    node = ngx_http_sluice_rate_rules.root;

    while (node != &ngx_http_sluice_rate_rules_sentinel) {

        if (node->key == slot) {
            rule = (ngx_http_sluice_rate_rule_t *) node;
            rule->copies++;
            return rule;
        }

        node = slot < node->key ? node->left : node->right;
    }

    rule = ngx_alloc(sizeof(ngx_http_sluice_rate_rule_t), ngx_cycle->log);
    if (rule == NULL) {
        return NULL;
    }

    rule->node.key = slot;
    rule->copies = 1;
    ngx_rbtree_insert(&ngx_http_sluice_rate_rules, &rule->node);

    ngx_http_sluice_rate_rules_count++;
    ngx_http_sluice_rate_rules_divide();

    return rule;
}


static void
ngx_http_sluice_rate_rules_forget(void *data)
{
    ngx_http_sluice_rate_rule_t  *rule = data;

    if (--rule->copies) {
        return;
    }

    ngx_rbtree_delete(&ngx_http_sluice_rate_rules, &rule->node);
    ngx_free(rule);

    ngx_http_sluice_rate_rules_count--;
    ngx_http_sluice_rate_rules_divide();
}


static void
ngx_http_sluice_rate_rules_divide(void)
{
    ngx_http_sluice_rate_rules_lines =
        sluice_core_meter_share(ngx_sluice_limits_meter(),
                                ngx_http_sluice_rate_rules_count);
}


uint32_t
ngx_http_sluice_rate_share(void)
{
    return ngx_http_sluice_rate_rules_lines;
}
